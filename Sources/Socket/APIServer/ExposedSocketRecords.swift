public import BrokerCore
internal import Records
internal import StrictJSON

/// Restricted sockets in the audit log. Tokens that they issue have entries of their own.
extension RecordKeeper {
    /// Takes a fact over; to be used as the registry's `record`.
    @Sendable public func note(_ fact: ExposedSocketRegistry.Fact) {
        switch fact {
        case .opened(let exposedSocket): write("exposed_socket_opened", exposedSocket.name, of: exposedSocket)
        case .closed(let exposedSocket, let ending):
            write("exposed_socket_closed", exposedSocket.name, reason: ending.rawValue)
        case .failed(let name, let reason): write("exposed_socket_failed", name, reason: reason.sentence)
        case .damaged(let reason): write("exposed_sockets_damaged", nil, reason: reason.sentence)
        }
    }

    /// A user who is not allowed connected.
    public func noteRefused(uid: UInt32, at exposedSocket: ExposedSocket) {
        let members: JSONObject = JSONObject([
            .init("exposed_socket", .string(exposedSocket.name)), .init("uid", .integer(Int(uid))),
        ])
        audit.write("exposed_socket_refused", members, at: exposedSocket.name)
    }

    /// A message that was not sent to the MCP server of a socket. Equal ones are counted together.
    ///
    /// - Parameters:
    ///   - method: from outside, as `tool` is.
    ///   - reason: a sentence.
    @Sendable public func noteDenied(
        method: String, tool: String?, reason: String, uid: Int?, pid: Int?, at exposedSocket: ExposedSocket
    ) {
        var common = RecordKeeper.members(of: exposedSocket)
        common["uid"] = uid.map { .integer($0) }
        var members = common
        members["pid"] = pid.map { .integer($0) }
        members["method"] = .string(RecordKeeper.bounded(method))
        members["tool"] = tool.map { .string(RecordKeeper.bounded($0)) }
        members["reason"] = .string(RecordKeeper.bounded(reason))
        audit.writeCounted("mcp_message_denied", members, common: common, at: exposedSocket.name)
    }

    private static func members(of exposedSocket: ExposedSocket) -> JSONObject {
        var members = JSONObject([.init("exposed_socket", .string(exposedSocket.name))])
        members["account"] = exposedSocket.accounts.first.map { .string($0.rawValue) }
        return members
    }

    /// A message of the MCP server that was not passed on. Equal ones are counted together.
    @Sendable public func noteWithheld(reason: String, at exposedSocket: ExposedSocket) {
        let common = RecordKeeper.members(of: exposedSocket)
        var members = common
        members["reason"] = .string(RecordKeeper.bounded(reason))
        audit.writeCounted("mcp_message_withheld", members, common: common, at: exposedSocket.name)
    }

    private func write(_ event: String, _ name: String?, reason: String? = nil, of exposedSocket: ExposedSocket? = nil)
    {
        var members = JSONObject()
        members["exposed_socket"] = name.map { .string($0) }
        members["reason"] = reason.map { .string(RecordKeeper.bounded($0)) }
        if let order = exposedSocket?.order {
            members["accounts"] = .array(order.accounts.map { .string($0.rawValue) })
            members["scope"] = order.ceiling.map { .string($0.joined(separator: " ")) }
            if !order.allowedUIDs.isEmpty {
                members["allow_uids"] = .array(order.allowedUIDs.map { .integer(Int($0)) })
            }
            members["flatpak"] = order.flatpak.map { .string($0) }
            members["tools"] = order.mcp?.tools.map { .array($0.map { .string($0) }) }
            members["methods"] = order.mcp.map { .array($0.methods.map { .string($0) }) }
            members["expires_at"] = exposedSocket?.expiry.map { .integer($0.at.seconds) }
        }
        audit.write(event, members)
    }
}
