public import BrokerCore
public import DesktopBus
internal import StrictJSON

/// The desktop, as far as notices need it.
public struct Desktop: Sendable {
    /// Shows a notice, in the place of another one if that is still shown; nil if nobody is there to show it.
    public var show: @Sendable (Notice, _ replacing: ShownNotice?) async -> ShownNotice?
    public var close: @Sendable (ShownNotice) async -> Void
    /// Opens a page in the person's browser; false if it could not be.
    public var open: @Sendable (_ page: String, _ activationToken: String?) async -> Bool
    /// What becomes of notices.
    public var news: @Sendable () -> AsyncStream<NoticeEvent>

    public init(
        show: @escaping @Sendable (Notice, _ replacing: ShownNotice?) async -> ShownNotice?,
        close: @escaping @Sendable (ShownNotice) async -> Void,
        open: @escaping @Sendable (_ page: String, _ activationToken: String?) async -> Bool,
        news: @escaping @Sendable () -> AsyncStream<NoticeEvent>
    ) {
        self.show = show
        self.close = close
        self.open = open
        self.news = news
    }
}

/// What notices need to know and do about sign-ins.
public struct SignIns: Sendable {
    /// Who is signed in: an address or a name.
    public var person: @Sendable (AccountName) async -> String?
    /// The page of the account's sign-in: of the one that is pending, or of one that is begun for it. Nil where there is
    /// no page to be shown.
    public var page: @Sendable (AccountName) async -> String?

    public init(
        person: @escaping @Sendable (AccountName) async -> String?,
        page: @escaping @Sendable (AccountName) async -> String?
    ) {
        self.person = person
        self.page = page
    }
}

extension SignIns {
    /// The broker's.
    public init(_ broker: Broker) {
        self.init(
            person: { name in
                guard let view = try? await broker.account(name), view.subject != nil else { return nil }
                // Where somebody has no such address, a provider may say so by an empty one.
                return ["email", "phone", "name"].lazy.compactMap { view.user?[$0]?.string }.first { !$0.isEmpty }
                    ?? view.subject
            },
            page: { name in
                if let pending = try? await broker.account(name).flow, !pending.changesUser {
                    // Looked at by its own name: a page whose time has passed gets another address there.
                    guard let flow = try? await broker.flow(pending.id) else { return nil }
                    return await SignIns.page(of: flow, broker)
                }
                guard let flow = try? await broker.signIn(name, SignInRequest(), isInterested: false).flow else {
                    return nil
                }
                return await SignIns.page(of: flow, broker)
            })
    }

    private static func page(of flow: FlowView, _ broker: Broker) async -> String? {
        if let device = flow.device { return device.verificationURIComplete ?? device.verificationURI }
        if let url = await broker.openURL(of: flow.id) { return url }
        return flow.authorizationURL.isEmpty ? nil : flow.authorizationURL
    }
}
