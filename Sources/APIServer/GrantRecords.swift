public import BrokerCore
internal import Records
internal import StrictJSON

/// What becomes of restricted sockets, in the audit log. Tokens that they gave have lines of their own.
extension RecordKeeper {
    /// Takes a fact over; meant to be the exposure book's `record`.
    @Sendable public func note(_ fact: ExposureBook.Fact) {
        switch fact {
        case .opened(let exposure): write("grant_opened", exposure.name, of: exposure)
        case .closed(let exposure, let ending): write("grant_closed", exposure.name, reason: ending.rawValue)
        case .failed(let name, let reason): write("grant_failed", name, reason: reason)
        case .damaged(let reason): write("grants_damaged", nil, reason: reason)
        }
    }

    /// Somebody connected who may not.
    func noteRefused(uid: UInt32, at exposure: Exposure) {
        let members: JSONObject = JSONObject([
            .init("grant", .string(exposure.name)), .init("uid", .integer(Int(uid))),
        ])
        audit.write("grant_refused", members)
    }

    private func write(_ event: String, _ name: String?, reason: String? = nil, of exposure: Exposure? = nil) {
        var members = JSONObject()
        members["grant"] = name.map { .string($0) }
        members["reason"] = reason.map { .string(RecordKeeper.bounded($0)) }
        if let order = exposure?.order {
            members["accounts"] = .array(order.accounts.map { .string($0.rawValue) })
            members["scope"] = order.ceiling.map { .string($0.joined(separator: " ")) }
            if !order.allowedUIDs.isEmpty {
                members["allow_uids"] = .array(order.allowedUIDs.map { .integer(Int($0)) })
            }
            members["flatpak"] = order.flatpak.map { .string($0) }
            members["expires_at"] = exposure?.expiry.map { .integer($0.at) }
        }
        audit.write(event, members)
    }
}
