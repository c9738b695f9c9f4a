import APIServer
import BrokerCore
import CallbackListener
import Configuration
import DeepLinks
import Desktop
import Glibc
import Logging
import OAuthSignIn
import Records
import RingbackBase
import SessionVault

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
                    binding.owner = account.rawValue
                    binding.peerUIDs = peers.of(account)
                    binding.acceptsPost = peers.postsForm(account)
                    return try listener.open(binding)
                } catch {
                    throw BrokerError(error)
                }
            },
            openEntrance: { key, redirectURI, account throws(BrokerError) in
                do throws(CallbackListenerError) {
                    return try listener.openEntrance(
                        key: key, beside: redirectURI, owner: account.rawValue, peerUIDs: peers.of(account))
                } catch {
                    throw BrokerError(ofEntrance: error)
                }
            },
            openSite: { name, account, site throws(BrokerError) in
                do throws(CallbackListenerError) {
                    return try listener.openSite(
                        name, owner: account.rawValue, peerUIDs: peers.of(account), serving: site)
                } catch {
                    throw BrokerError(ofEntrance: error)
                }
            },
            close: { redirectURI, account in
                if redirectURI.hasPrefix("http://") { listener.close(redirectURI, owner: account.rawValue) }
            },
            listeners: { listener.listeners })
    }
}

extension BrokerError {
    fileprivate init(_ error: CallbackListenerError) {
        switch error {
        case .unsuitable(let reason): self = .misconfigured(.stated(reason))
        case .shuttingDown: self = .cancelled
        case .portInUse, .system: self = .portInUse(ListenerFailure(error, setting: "redirect_uri"))
        }
    }

    fileprivate init(ofEntrance error: CallbackListenerError) {
        switch error {
        case .shuttingDown: self = .cancelled
        case .portInUse, .system, .unsuitable: self = .entranceUnavailable(ListenerFailure(error, setting: nil))
        }
    }
}

extension ListenerFailure {
    fileprivate init(_ error: CallbackListenerError, setting: String?) {
        switch error {
        case .portInUse(let host, let port, let holder):
            self.init(.portTaken(by: holder), host: host, port: port > 0 ? port : nil, setting: setting)
        case .system(let host, let port, let call, let code):
            self.init(.system(call: call, errno: code), host: host, port: port > 0 ? port : nil, setting: setting)
        case .unsuitable(let reason): self.init(.unsuitable(.stated(reason)))
        case .shuttingDown: self.init(.unsuitable(.stated("the daemon is shutting down")))
        }
    }
}

extension CallbackVerdict {
    var flow: String? {
        switch self {
        case .completed(let flow), .failed(let flow, _), .noted(let flow), .outdated(let flow), .expired(let flow): flow
        case .ignored(_, let flow): flow
        case .ended: nil
        }
    }

    /// Nil for a callback that matched no pending flow.
    var page: Page? {
        switch self {
        case .completed: .done
        case .failed(_, .accessDenied): .denied
        case .failed(_, .flowExpired), .expired: .expired
        case .failed: .failed
        case .noted: .noted
        case .outdated: .outdated
        case .ignored(.kind(let fact), _?) where (fact.reason as? OAuthReason)?.isAboutIssuer == true: .wrongIssuer
        case .ignored(_, _?): .refused
        case .ignored, .ended: nil
        }
    }
}

extension Reason {
    fileprivate init(_ obstacle: CallbackArrival.Obstacle) {
        self =
            switch obstacle {
            case .otherPath: .otherAddress
            case .posted:
                .stated("The response came by POST. That is accepted only with response_mode = \"form_post\".")
            case .notNavigated: .stated("The response did not come by a page load of the browser.")
            }
    }
}

extension SignInLabel {
    /// The user is that of the account, which a completed sign-in has just opened.
    fileprivate init(_ view: FlowView, _ broker: Broker) async {
        let name = view.providerHost == nil ? nil : view.displayName
        var (user, seconds): (String?, Int?)
        switch view.status {
        case .completed: user = try? await broker.account(view.account).who
        case .expired: seconds = (view.expiresAt - view.startedAt).wholeSeconds
        case .pending, .failed, .cancelled: break
        }
        self.init(
            account: name ?? view.account.rawValue, providerHost: view.providerHost,
            user: user.map { String($0.prefix(120)) }, seconds: seconds)
    }
}

/// Connects the listener, which must exist before the broker, with the broker, which must know the listener.
struct Arrivals: Sendable {
    let broker: OnceBox<Broker>

    @Sendable func deliver(_ arrival: CallbackArrival) async -> CallbackOutcome {
        guard let broker = broker.value else { return CallbackOutcome(nil) }
        let accounts = Set(arrival.owners.compactMap { AccountName($0) })
        let verdict = await broker.receive(
            arrival.url, form: arrival.form, for: accounts, refusal: arrival.obstacle.map { Reason($0) })
        guard let id = verdict.flow, let flow = try? await broker.flow(id) else {
            return CallbackOutcome(verdict.page)
        }
        // The link of an older message has a page of its own, which says so.
        let next = verdict.page == .outdated ? nil : await broker.ownPage(of: id)
        return CallbackOutcome(verdict.page, of: await SignInLabel(flow, broker), next: next)
    }

    @Sendable func visit(_ visit: EntranceVisit) async -> EntranceOutcome {
        switch visit {
        case .opened(let key):
            guard let broker = broker.value else { return .spent }
            if let page = await broker.pageBehind(entrance: key) { return .redirected(to: page) }
            guard let flow = await broker.completedFlow(entrance: key) else { return .spent }
            return .completed(await SignInLabel(flow, broker))
        case .foreign(let key, let uid):
            await broker.value?.noteForeign(entrance: key, uid: uid)
            return .spent
        }
    }
}

extension DeepLinkRegistry {
    /// The helper starts the programs: it reads their names itself, and is given the link.
    convenience init(
        _ broker: Broker, helper: HelperConnection, work: Work, record: @escaping @Sendable (BrokerFact) -> Void,
        logger: Logger
    ) {
        self.init(broker: broker, work: work, record: record) { scheme, url in
            do throws(HelperError) {
                try await helper.startApplication(scheme: scheme, url: url)
                return nil
            } catch {
                logger.error("The app of the scheme \(scheme) was not started: \(error)")
                return "\(error)"
            }
        }
    }
}

extension LinkScheme {
    init(_ scheme: SchemeConfiguration) {
        self.init(name: scheme.name, hasCommand: scheme.command != nil, takesURL: scheme.takesURL)
    }
}

extension Main {
    /// The certificates for an account that is about to be added, by the rules that hold for a configured one.
    @Sendable static func readCertificates(_ path: String) throws(UntrustedFile) -> ServerTrust {
        do throws(ConfigurationError) {
            return try ServerTrust(certificatesIn: path, user: geteuid())
        } catch {
            throw UntrustedFile(reason: error.message)
        }
    }
}

extension Account {
    /// An account that is not configured yet, by the rules that hold for a configured one.
    static func reader(
        _ place: ConfigurationPlace, _ secrets: AccountSecrets
    ) -> @Sendable (AccountName, String) throws(UnusableAccount) -> Account {
        { name, text throws(UnusableAccount) in
            do throws(ConfigurationErrors) {
                let configuration = try AccountConfiguration.read(name.rawValue, in: text, at: place)
                guard let account = Account(configuration, secrets) else { throw ConfigurationErrors([]) }
                return account
            } catch {
                throw UnusableAccount(errors: error.errors.map(\.json))
            }
        }
    }
}
