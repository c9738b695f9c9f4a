internal import RingbackAPI
package import RingbackBase

/// A link of the app's URL scheme that the user followed and that did not finish a sign-in.
public struct DeepLink: Sendable, Hashable, Identifiable {
    /// For ``BrokerClient/acknowledge(_:)``. Grows with each link.
    public let id: String
    /// In lower case, without the colon.
    public let scheme: String
    /// The link as it came. Anybody may have written it, a web page for example: do not trust anything in it.
    public let url: String
    public let at: WallInstant

    package init(reading json: JSON) throws(RingbackError) {
        id = try json.text("id", of: "link")
        scheme = try json.text("scheme", of: "link")
        url = try json.text("url", of: "link")
        at = WallInstant(json["at"]) ?? WallInstant(secondsSince1970: 0)
    }
}

public struct DeepLinks: AsyncSequence, Sendable {
    public typealias Element = DeepLink
    public typealias Failure = RingbackError

    private static let backlog = 64
    let source: DeepLinkSource

    public func makeAsyncIterator() -> BrokerEventIterator<DeepLink> {
        BrokerEventIterator(of: source, backlog: Self.backlog)
    }
}

extension BrokerClient {
    /// The links of the app's scheme from now on, preceded by those that were not acknowledged yet. The sequence ends
    /// when another program begins to listen for the scheme: the one that listened last gets the links. When the daemon
    /// restarts, it connects again. A link is given once to each listener until it is acknowledged, for a minute at
    /// most: acknowledge it when the app has taken it over.
    ///
    /// Throws what waiting does not change: `not_found`, `policy_denied`, `foreign_server`.
    public func deepLinks(_ scheme: String) -> DeepLinks {
        DeepLinks(source: DeepLinkSource(scheme: scheme, client: self))
    }

    /// The app has taken the link over: no other listener gets it. A link that is not kept any more is no error.
    public func acknowledge(_ link: DeepLink) async throws(RingbackError) {
        try await run { calls throws(RingbackError) in try calls.acknowledge(link) }
    }
}

extension BrokerCalls {
    package func acknowledge(_ link: DeepLink) throws(RingbackError) {
        do throws(RingbackError) { _ = try call(.acknowledgeDeepLink, [link.id]) } catch {
            guard error.kind == .notFound else { throw error }
        }
    }
}

struct DeepLinkSource: EventSource {
    let scheme: String
    let client: BrokerClient
    static let finalErrors: [RingbackError.Kind] = [.notFound, .validationFailed, .policyDenied, .foreignServer]
    /// The ids of the links that were delivered last. A link that is not acknowledged yet comes again after a break.
    var delivered: [String] = []
    private static let memory = 64

    mutating func follow(
        _ interruption: Interruption, hasConnected: () -> Void, _ deliver: (DeepLink) -> Void
    ) throws(RingbackError) -> Bool {
        let events = try client.calls(interruption).openDeepLinks(scheme: scheme)
        hasConnected()
        while let event = try events.next() {
            if event.name == "listener_replaced" { return true }
            guard event.name == "deep_link", let data = try? JSON(parsing: event.data.utf8),
                let link = try? DeepLink(reading: data), !delivered.contains(link.id)
            else { continue }
            delivered.append(link.id)
            if delivered.count > DeepLinkSource.memory { delivered.removeFirst() }
            deliver(link)
        }
        return false
    }
}
