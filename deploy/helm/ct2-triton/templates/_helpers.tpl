{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{- define "ct2.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "ct2.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "ct2.labels" -}}
{{ include "ct2.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "ct2.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "ct2.httpHost" -}}
{{ .Values.service.http | ternary "0.0.0.0" "127.0.0.1" }}
{{- end -}}

{{- define "ct2.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "ct2.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* What the schema cannot say: rules between values. */}}
{{- define "ct2.check" -}}
{{- $models := .Values.modelRepository -}}
{{- if not (or $models.existingClaim $models.prepare) -}}
{{- fail "the server would have no model: name a volume in modelRepository.existingClaim, or models in modelRepository.prepare" -}}
{{- end -}}
{{- if and .Values.gpus $models.prepare (not $models.prepareImage) -}}
{{- fail "the image for GPUs has no ct2-prepare: name the CPU image in modelRepository.prepareImage, or set modelRepository.prepare to [] and existingClaim to a volume of prepared models" -}}
{{- end -}}
{{- if and .Values.gpus .Values.models -}}
{{- fail "models must be empty with gpus: the image for GPUs serves the whole repository" -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) -}}
{{- fail (printf "autoscaling.minReplicas is %v, more than maxReplicas, which is %v" .Values.autoscaling.minReplicas .Values.autoscaling.maxReplicas) -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (not (or .Values.serviceMonitor.enabled .Values.autoscaling.prometheus.selector)) -}}
{{- fail "autoscaling needs metrics in Prometheus: set serviceMonitor.enabled, or say in autoscaling.prometheus.selector which labels our series have" -}}
{{- end -}}
{{- end -}}
