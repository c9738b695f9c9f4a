import RingbackBase
import Testing

@Suite struct `A message to or from a provider` {
    @Test func `shows no secret when it is printed`() {
        let request = HTTPRequest(
            method: "POST", url: "https://id.example.org/token", authorization: Secret("Basic c2VjcmV0"),
            body: Secret("code=c0de&client_secret=s3cret"))
        let response = HTTPResponse(status: 200, body: Secret(#"{"access_token":"t0ken"}"#))
        var dumped = ""
        dump(request, to: &dumped)
        dump(response, to: &dumped)
        for text in ["\(request)", "\(response)", String(reflecting: request), String(reflecting: response), dumped] {
            for secret in ["c2VjcmV0", "c0de", "s3cret", "t0ken"] { #expect(!text.contains(secret)) }
        }
    }

    @Test func `a request to a provider has the default limits unless others are given`() {
        let request = HTTPRequest(url: "https://id.example.org/")
        #expect(request.method == "GET")
        #expect(request.limits.timeout == .seconds(20))
        #expect(request.limits.maxBody == 1 << 20)
        #expect(request.trust == .system)
        #expect(!request.keepsPartialBody)
    }

    @Test func `is whole unless it says why it is not`() {
        #expect(!HTTPResponse(status: 200).isTruncated)
        #expect(HTTPResponse(status: 200, truncation: .timedOut(host: "id.example.org")).isTruncated)
    }
}
