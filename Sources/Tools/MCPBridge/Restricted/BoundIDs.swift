/// Ids of sessions and events, bound to one exposed socket: its programs get them with a mark in front that only its relay
/// can make, and an id without it is refused. So no program can use a session of another one.
public struct BoundIDs: Sendable {
    /// What an id is of.
    public enum Kind: String, Sendable {
        case session, event
    }

    private let mark: @Sendable (String) -> String

    /// - Parameter mark: a keyed digest as visible ASCII without a full stop, always of the same length.
    public init(mark: @escaping @Sendable (String) -> String) { self.mark = mark }

    /// The id as the socket's programs get it. Nil for one that cannot be sent back.
    public func bind(_ id: String, _ kind: Kind) -> String? {
        let bound = "\(mark("\(kind.rawValue) \(id)")).\(id)"
        return FieldRules.isSessionID(id) && FieldRules.isSessionID(bound) ? bound : nil
    }

    /// The id as the server gave it; nil for one that is not of this socket.
    public func unbind(_ bound: String, _ kind: Kind) -> String? {
        guard FieldRules.isSessionID(bound), let dot = bound.firstIndex(of: ".") else { return nil }
        let id = String(bound[bound.index(after: dot)...])
        let wanted = Array(mark("\(kind.rawValue) \(id)").utf8)
        let found = Array(bound[..<dot].utf8)
        guard !id.isEmpty, wanted.count == found.count else { return nil }
        // As long for the first wrong byte as for the last one.
        return zip(wanted, found).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0 ? id : nil
    }
}
