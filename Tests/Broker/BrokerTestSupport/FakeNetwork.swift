import BrokerCore
import Cryptography
import RingbackBase
import Synchronization

@testable import OAuthSignIn

/// Providers by origin; whoever else is asked does not exist.
final class FakeNetwork: HTTPClient {
    private let providers: [FakeProvider]
    private let strays = Mutex<[String]>([])

    init(_ providers: [FakeProvider]) { self.providers = providers }

    func provider(_ origin: String) -> FakeProvider? { providers.first { $0.origin == origin } }

    /// URLs of nobody that were asked.
    var strayURLs: [String] { strays.withLock { $0 } }

    func send(_ request: HTTPRequest) async throws(HTTPClientError) -> HTTPResponse {
        let origin = (try? WebURL(parsing: request.url))?.origin ?? ""
        guard let provider = providers.first(where: { $0.origin == origin }) else {
            strays.withLock { $0.append(request.url) }
            throw .unreachable(host: origin, reason: "no such host")
        }
        return try await provider.answer(request)
    }
}
