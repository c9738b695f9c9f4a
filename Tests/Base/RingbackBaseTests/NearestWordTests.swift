import Testing

@testable import RingbackBase

@Suite struct `The nearest word` {
    private let keys = [
        "api_key", "authorization_params", "client_id", "flow_timeout", "issuer", "origins", "pinned_public_keys",
        "policy", "provider", "redirect_uri", "rpc", "scopes", "url",
    ]

    @Test(arguments: [
        ("isuer", "issuer"), ("Issuer", "issuer"), ("clientid", "client_id"), ("client-id", "client_id"),
        ("scope", "scopes"), ("redirect_url", "redirect_uri"), ("tiemout_flow", nil), ("flow_tiemout", "flow_timeout"),
        ("pinned_public_key", "pinned_public_keys"), ("x", nil), ("", nil), ("frobnicate", nil), ("quota", nil),
        ("auth_params", nil), ("authorisation_params", "authorization_params"),
    ]) func `is the one that was meant, or none`(written: String, meant: String?) {
        #expect(NearestWord.find(for: written, among: keys) == meant)
    }

    @Test func `counts an exchange of neighbours as one change`() {
        #expect(NearestWord.distance("abcd", "abdc") == 1)
        #expect(NearestWord.distance("", "abc") == 3)
        #expect(NearestWord.distance("kitten", "sitting") == 3)
    }

    @Test func `costs nothing for absurd keys`() {
        #expect(NearestWord.find(for: String(repeating: "a", count: 1_000_000), among: keys) == nil)
    }
}
