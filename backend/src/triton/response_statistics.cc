// SPDX-License-Identifier: Apache-2.0
#include "triton/response_statistics.h"

#include "steady_clock.h"
#include "triton/guard.h"

namespace ct2triton {

std::unique_ptr<ResponseStatistics> ResponseStatistics::Of(TRITONBACKEND_ModelInstance* instance,
                                                           TRITONBACKEND_Request* request,
                                                           uint64_t start_ns) noexcept {
  if (&TRITONBACKEND_ModelInstanceResponseStatisticsNew == nullptr) return nullptr;
  try {
    std::unique_ptr<ResponseStatistics> made(new ResponseStatistics(instance, start_ns));
    ThrowIfError(TRITONBACKEND_ResponseFactoryNew(&made->factory_, request),
                 "preparing statistics of responses");
    return made;
  } catch (...) {
    LogCurrentError();
    return nullptr;
  }
}

ResponseStatistics::~ResponseStatistics() {
  if (factory_ == nullptr) return;
  LogIfError("dropping statistics of responses",
             [this] { return TRITONBACKEND_ResponseFactoryDelete(factory_); });
}

void ResponseStatistics::Report(uint64_t output_ns, TRITONSERVER_Error* error) noexcept {
  const uint64_t end_ns = SteadyNow_ns();
  TRITONBACKEND_ModelInstanceResponseStatistics* one = nullptr;
  const auto all = [&] {
    const auto check = [](TRITONSERVER_Error* failure) {
      ThrowIfError(failure, "reporting statistics of a response");
    };
    check(TRITONBACKEND_ModelInstanceResponseStatisticsNew(&one));
    check(TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(one, instance_));
    check(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(one, factory_));
    check(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(one, start_ns_));
    check(TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(one, output_ns));
    check(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(one, end_ns));
    if (error != nullptr) check(TRITONBACKEND_ModelInstanceResponseStatisticsSetError(one, error));
    return TRITONBACKEND_ModelInstanceReportResponseStatistics(one);
  };
  LogIfError("reporting statistics of a response", all);
  if (one != nullptr) {
    LogIfError("dropping statistics of a response",
               [one] { return TRITONBACKEND_ModelInstanceResponseStatisticsDelete(one); });
  }
  start_ns_ = end_ns;
}

}  // namespace ct2triton
