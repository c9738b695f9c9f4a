internal import BrokerCore

extension ExposedSocketReason: Sentence {
    var sentence: String {
        switch self {
        case .configured(let name, let place):
            "\(name) is defined in the configuration, \(place). Choose another name."
        case .exposedAlready(let name): "\(name) is exposed already. Revoke it first."
        case .tooMany(let most): "There are \(most) exposed sockets already. Revoke one first."
        case .notRecorded(let name): "The state directory cannot be written, so \(name) was not exposed."
        case .endNotRecorded(let name):
            "\(name) is closed. But the state directory cannot be written: if the daemon ends "
                + "before it can be, its next start opens \(name) again."
        case .unknown: "Nothing is exposed under this name."
        case .closedAlready(let name): "\(name) is closed already."
        case .closed(let reason, let place): reason.sentence(at: place ?? "the configuration")
        case .unknownCause: "The cause is unknown."
        case .wrongOrder(let reason): "\(reason.sentence)."
        case .wrongMember(let member, let reason): "\(member): \(reason.sentence)"
        case .recordLost: "It is lost."
        case .recordDamaged(let place): "The file is not valid\(place.map { ". It was renamed to \($0)" } ?? "")."
        }
    }
}

extension ClosedSocket.Reason {
    fileprivate func sentence(at place: String) -> String {
        switch self {
        case .revoked: "It was revoked. It stays closed until its table is changed, at \(place)."
        case .expired: "Its time is over. It stays closed until its table is changed, at \(place)."
        case .forgotten:
            "The record of what was revoked (exposed-sockets.json in the state directory) was lost or damaged, so "
                + "this may have been revoked. It stays closed until its table is changed, at \(place)."
        case .nameTaken:
            "A socket of this name was made by a call, and stays as it was. Give the table at \(place) another name, "
                + "or revoke that socket and have the configuration read again."
        case .accountChanged:
            "An account that it showed is configured for another provider or client now. Make it anew if that is "
                + "to be shown. It is listed until it is revoked."
        case .failed: "It cannot be opened."
        }
    }
}
