// SPDX-License-Identifier: Apache-2.0

// Translates a text over HTTP, with Go's own library: it asks a model of text on the server itself.
//
//	go run examples/client.go "The ticket office opens at 5:45." de fr
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"
)

type question struct {
	Text      string   `json:"text_input"`
	Source    string   `json:"source_language"`
	Languages []string `json:"target_languages"`
}

// Texts are a list; one text may come without brackets.
type texts []string

func (all *texts) UnmarshalJSON(data []byte) error {
	if data[0] != '"' {
		return json.Unmarshal(data, (*[]string)(all))
	}
	*all = make(texts, 1)
	return json.Unmarshal(data, &(*all)[0])
}

type answer struct {
	Texts texts  `json:"text_output"`
	Error string `json:"error"`
}

func translate(server, model, text string, languages []string) ([]string, error) {
	body, err := json.Marshal(question{text, "en", languages})
	if err != nil {
		return nil, err
	}
	client := http.Client{Timeout: 10 * time.Second} // rather an error than a long wait
	url := fmt.Sprintf("%s/v2/models/%s/generate", server, model)
	response, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var got answer
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
		return nil, fmt.Errorf("%d: %w", response.StatusCode, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%d: %s", response.StatusCode, got.Error)
	}
	return got.Texts, nil
}

func setting(name, usual string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return usual
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, `usage: client.go TEXT LANGUAGE...`)
		os.Exit(2)
	}
	server := setting("CT2_HTTP", "http://localhost:8000")
	translations, err := translate(server, setting("CT2_MODEL", "demo-text"), os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for place, translation := range translations {
		fmt.Printf("%s  %s\n", os.Args[2+place], translation)
	}
}
