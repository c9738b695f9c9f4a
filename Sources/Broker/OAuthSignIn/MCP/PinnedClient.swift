internal import HTTPMessages
internal import Synchronization

// Attack (DNS rebinding): the name of a host that only documents name, or of the MCP server itself, resolves to an address of
// the Internet at first, and to one inside the network afterwards.

/// Resolves each host once: requests after the first response of a host go to the same address. For one walk, not longer: an
/// address may change.
final class PinnedClient: HTTPClient {
    private let http: any HTTPClient
    /// By host name.
    private let addresses = Mutex<[String: String]>([:])

    init(_ http: any HTTPClient) { self.http = http }

    func send(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse {
        guard let host = try? WebURL(parsing: request.url).host else { return try await http.send(request) }
        var request = request
        request.address = addresses.withLock { $0[host] }
        let response = try await http.send(request)
        if let address = response.address { addresses.withLock { $0[host] = $0[host] ?? address } }
        return response
    }
}
