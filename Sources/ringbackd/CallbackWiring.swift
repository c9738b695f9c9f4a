import BrokerCore
import CallbackListener

extension CallbackReceiver {
    /// Opens a listener for redirect URIs of this machine. The callbacks of others come by `ringback open` or `ringback
    /// complete`.
    init(_ listener: LoopbackListener, peers: PeerUIDs) {
        self.init(
            open: { template, account throws(BrokerError) in
                let template = template ?? "http://127.0.0.1:{port}/callback/\(account)"
                guard template.hasPrefix("http://") else { return template }
                do throws(CallbackListenerError) {
                    var binding = try CallbackBinding(parsing: template)
                    binding.peerUIDs = peers.of(account)
                    binding.acceptsPost = peers.postsForm(account)
                    return try listener.open(binding)
                } catch {
                    throw BrokerError(error)
                }
            },
            openEntrance: { key, redirectURI, account in
                try? listener.open(.entrance(key: key, beside: redirectURI, peerUIDs: peers.of(account)))
            },
            close: { redirectURI in
                if redirectURI.hasPrefix("http://") { listener.close(redirectURI) }
            },
            listeners: { listener.listeners })
    }
}

extension BrokerError {
    fileprivate init(_ error: CallbackListenerError) {
        switch error {
        case .portInUse(let port, _): self = .portInUse(port, reason: error.description)
        case .unsuitable(let reason): self = .misconfigured(reason)
        case .shuttingDown: self = .cancelled
        case .system: self = .portInUse(0, reason: error.description)
        }
    }
}

extension CallbackOutcome {
    /// The page that the browser gets.
    init(_ verdict: CallbackVerdict) {
        switch verdict {
        case .completed: self = .completed
        case .failed: self = .failed
        case .noted: self = .noted
        case .outdated: self = .outdated
        case .ignored, .ended: self = .unknown
        }
    }
}
