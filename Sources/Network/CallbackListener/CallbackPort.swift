internal import Cryptography
internal import LocalHTTP

/// One open port and the redirect URIs of the pending flows at it.
struct CallbackPort: Sendable {
    struct Place: Hashable, Sendable {
        /// The value of the Host field.
        let authority: String
        let path: String
    }
    /// For one owner of a redirect URI. Its latest flow's rule holds.
    struct Rule: Sendable {
        /// The number of the owner's pending flows; 0 for a while after the last one.
        var count = 0
        var acceptsPost: Bool
        var peerUIDs: Set<UInt32>
    }
    struct Waiting: Sendable {
        /// The redirect URI without its query.
        var base: String
        /// By owner, see ``CallbackBinding/owner``.
        var rules: [String: Rule] = [:]
        /// Increased whenever a flow is added or removed: a timer with an older value does nothing.
        var generation = 0
        /// The key of a start address, see ``LoopbackListener/openEntrance(key:beside:owner:peerUIDs:)``.
        var entranceKey: String?
        /// Answers every request with this Host field; nil for a redirect URI.
        var site: LocalSite?
        var count: Int { rules.values.reduce(0) { $0 + $1.count } }
        var peerUIDs: Set<UInt32> { rules.values.reduce(into: []) { $0.formUnion($1.peerUIDs) } }
    }

    let number: Int
    /// Opened for a redirect URI without a fixed port. Such a port is shared.
    let isFree: Bool
    var families: Set<Family> = []
    var waiting: [Place: Waiting] = [:]
    /// The Host fields of all redirect URIs since the port was opened, with the families that they were bound on.
    var authorities: [String: Set<Family>] = [:]
    /// Pages that name an account, by path. Kept until the port is closed, for a reload or another tab.
    private(set) var results: [String: PageContent] = [:]
    /// Users and programs could otherwise fill the memory: with users who sign in, and sign-ins of different length.
    private static let mostResults = 500

    /// A page that names an account has a key that nobody can guess: only browsers that delivered a callback of the
    /// account are told of it.
    mutating func path(of content: PageContent) -> String? {
        guard let path = content.page.path, content.signIn != nil else { return content.page.path }
        if let known = results.first(where: { $0.value == content }) { return known.key }
        guard results.count < CallbackPort.mostResults else { return path }
        let own = "\(path)/\(RandomToken.identifier())"
        results[own] = content
        return own
    }

    func page(at path: String) -> PageContent? { results[path] ?? CallbackPages.own[path] }
}
