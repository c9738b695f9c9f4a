public import BrokerCore
public import Desktop
internal import RingbackBase

/// The functions of the desktop that notifications need.
public struct NoticeDesktop: Sendable {
    /// Shows a notification and replaces another one if that is still shown; nil if it could not be shown.
    public var show: @Sendable (Notice, _ replacing: ShownNotice?) async -> ShownNotice?
    public var close: @Sendable (ShownNotice) async -> Void
    /// Opens a page in the account's browser; false if it could not be opened.
    public var open: @Sendable (_ page: String, AccountName, _ activationToken: String?) async -> Bool
    public var news: @Sendable () -> AsyncStream<NoticeEvent>

    public init(
        show: @escaping @Sendable (Notice, _ replacing: ShownNotice?) async -> ShownNotice?,
        close: @escaping @Sendable (ShownNotice) async -> Void,
        open: @escaping @Sendable (_ page: String, AccountName, _ activationToken: String?) async -> Bool,
        news: @escaping @Sendable () -> AsyncStream<NoticeEvent>
    ) {
        self.show = show
        self.close = close
        self.open = open
        self.news = news
    }
}

/// The functions of the broker that notifications need.
public struct SignIns: Sendable {
    /// The signed-in user: an address or a name.
    public var user: @Sendable (AccountName) async -> String?
    /// An address that leads to the page of the account's pending sign-in, or of a new one, and that other users of the
    /// machine cannot use: see ``Broker/openURL(of:)``. Nil if there is none, so that nothing may be opened.
    public var page: @Sendable (AccountName) async -> Page?

    public struct Page: Sendable, Equatable {
        public let url: String
        /// Two words by which the user knows a page of our own from an imitation; nil for a page of the provider.
        public let words: String?

        public init(url: String, words: String? = nil) {
            self.url = url
            self.words = words
        }
    }

    public init(
        user: @escaping @Sendable (AccountName) async -> String?,
        page: @escaping @Sendable (AccountName) async -> Page?
    ) {
        self.user = user
        self.page = page
    }
}

extension SignIns {
    public init(_ broker: Broker) {
        self.init(
            user: { name in try? await broker.account(name).who },
            page: { name in
                if let pending = try? await broker.account(name).flow, !pending.changesUser {
                    // By the flow's id, because this renews an authorization URL that has expired.
                    guard let flow = try? await broker.flow(pending.id) else { return nil }
                    return await Page(of: flow, broker)
                }
                // Where the provider has no page for the account, there may be one of our own.
                for method in [SignInMethod.browser, .page] {
                    let request = SignInRequest(method: method)
                    do throws(BrokerError) {
                        return await Page(of: try await broker.signIn(name, request, isInterested: false).flow, broker)
                    } catch {
                        switch error {
                        case .invalid, .methodUnsupported: continue
                        case .problem(let problem) where problem.cause == .methodUnsupported: continue
                        default: return nil
                        }
                    }
                }
                return nil
            })
    }
}

extension SignIns.Page {
    fileprivate init?(of flow: FlowView, _ broker: Broker) async {
        guard let url = try? await broker.openURL(of: flow.id) else { return nil }
        self.init(url: url, words: flow.details.words)
    }
}
