internal import Cryptography
internal import RingbackBase

/// An address of a flow for a program to open. A program is started with it, and every user of the machine can read its
/// argument list: with an authorization URL another user could sign in as themselves, and send the user's browser to
/// the callback. So the address is one of the callback listener with a key in it. It leads the user's own browser,
/// once, to a request whose state, nonce and verifier are used nowhere else.
public struct OpenAddress: Sendable, Equatable {
    public enum Visit: Sendable, Equatable {
        case none
        /// A browser of the user was sent on to the sign-in page.
        case fetched
        /// Another user requested it, or a user who is not known. It was not redirected.
        case foreign(uid: UInt32?)
    }

    let key: String
    public let url: String
    /// The account to whose page it leads, for which the address was opened.
    let account: AccountName
    public internal(set) var visit = Visit.none

    var isSpent: Bool { visit == .fetched }

    /// How many unused entrances a flow may have. With one more, the oldest is closed. As many used ones are
    /// remembered. Every program that joins the sign-in has one, and a browser may be slow to open it.
    static let maxLive = 32
}

extension FlowRegistry.Entry {
    /// The request that a callback with this key belongs to.
    func awaited(for key: [UInt8]) -> any AwaitedSignIn { requests.first { $0.key == key } ?? flow.awaited }

    var keys: [[UInt8]] { [flow.awaited.key] + requests.map(\.key) }

    /// Every local address at which the daemon listens for it, and the account for which it was opened.
    var addresses: [(url: String, account: AccountName)] {
        // A request at a provider shares the flow's redirect URI, which was opened once.
        let own = requests.map(\.redirectURI).filter { $0 != flow.redirectURI }
        let redirectURIs = ([flow.redirectURI] + own).filter { !$0.isEmpty }
        return redirectURIs.map { ($0, flow.account.name) } + entrances.map { ($0.url, $0.account) }
    }
}

extension FlowRegistry {
    /// Notes an entrance that has been opened. False if the flow has ended meanwhile.
    func add(_ entrance: OpenAddress, to id: String) async -> Bool {
        guard var entry = entries[id], entry.status == .pending else { return false }
        entry.entrances.append(entrance)
        var closed: [OpenAddress] = []
        for isSpent in [false, true]
        where entry.entrances.count(where: { $0.isSpent == isSpent }) > OpenAddress.maxLive {
            guard let index = entry.entrances.firstIndex(where: { $0.isSpent == isSpent }) else { continue }
            closed.append(entry.entrances.remove(at: index))
        }
        entries[id] = entry
        for entrance in closed { await close(entrance.url, of: entrance.account) }
        return true
    }

    /// Uses up an entrance. Returns its flow; nil if the entrance is not valid any more.
    func spend(entrance key: String) -> Flow? {
        guard let (id, index) = place(ofEntrance: key), let entry = entries[id], entry.status == .pending,
            !entry.entrances[index].isSpent
        else { return nil }
        let owner = entries[pageOwner(of: id)]
        // While a callback is processed, no second page is opened. A flow for another device is exempt, since each poll
        // claims it for a moment.
        guard let owner, owner.status == .pending, owner.claim == nil || owner.flow.awaited.details.device != nil
        else { return nil }
        entries[id]?.entrances[index].visit = .fetched
        return owner.flow
    }

    /// The flow that the entrance belongs to, if it has ended with a session.
    func completedFlow(entrance key: String) -> FlowView? {
        guard let (id, _) = place(ofEntrance: key), let entry = entries[id], entry.status == .completed else {
            return nil
        }
        return view(of: entry)
    }

    func noteForeign(entrance key: String, uid: UInt32?) {
        guard let (id, index) = place(ofEntrance: key), entries[id]?.entrances[index].isSpent == false else { return }
        entries[id]?.entrances[index].visit = .foreign(uid: uid)
    }

    /// Adds a request whose callback completes the flow. False if the flow has ended. One without a redirect URI awaits
    /// no callback, so it is not kept. Beyond the limit the oldest of its kind (link of a mail or not) is removed.
    func add(_ request: any AwaitedSignIn, to id: String) async -> Bool {
        guard var entry = entries[id], entry.status == .pending else { return false }
        guard !request.redirectURI.isEmpty else { return true }
        entry.requests.append(request)
        let isMessage = request.resendInterval != nil
        let alike = entry.requests.indices.filter { (entry.requests[$0].resendInterval != nil) == isMessage }
        let former = alike.count > OpenAddress.maxLive ? entry.requests.remove(at: alike[0]) : nil
        entries[id] = entry
        identifiers[request.key] = id
        guard let former else { return true }
        identifiers[former.key] = nil
        if former.redirectURI != entry.flow.redirectURI {
            await close(former.redirectURI, of: entry.flow.account.name)
        }
        return true
    }

    private func place(ofEntrance key: String) -> (id: String, index: Int)? {
        for (id, entry) in entries {
            if let index = entry.entrances.firstIndex(where: { $0.key == key }) { return (id, index) }
        }
        return nil
    }
}

extension Broker {
    /// A fresh address for a program to open; nil where the flow has no page. Throws `entranceUnavailable` if no such
    /// address can be opened: then no program may be started with a page of the flow.
    public func openURL(of id: String) async throws(BrokerError) -> String? {
        guard let view = try? await flowRegistry.view(id), view.status == .pending,
            !view.authorizationURL.isEmpty || view.details.device != nil,
            let owner = try? await flowRegistry.view(await flowRegistry.pageOwner(of: id))
        else { return nil }
        let key = RandomToken.base64URL(bits: 256).revealed()
        guard let url = try await callbackReceiver.openEntrance(key, owner.redirectURI, owner.account) else {
            return nil
        }
        guard await flowRegistry.add(OpenAddress(key: key, url: url, account: owner.account), to: id) else {
            await callbackReceiver.close(url, owner.account)
            return nil
        }
        return url
    }

    /// No address is opened for a code for another device: the program that requested the code shows it.
    func withOpenURL(_ view: FlowView) async -> FlowView {
        guard !view.authorizationURL.isEmpty else { return view }
        do throws(BrokerError) {
            guard let url = try await openURL(of: view.id), var fresh = try? await flowRegistry.view(view.id) else {
                return view
            }
            fresh.openURL = url
            return fresh
        } catch {
            var view = view
            view.openURLError = error
            return view
        }
    }

    /// The page to which a browser that opened an entrance is redirected; nil if the entrance is no longer valid.
    public func pageBehind(entrance key: String) async -> String? {
        if let page = await flowRegistry.spendPage(entrance: key) { return page }
        guard let flow = await flowRegistry.spend(entrance: key) else { return nil }
        // If the browser disconnects meanwhile, the new request is still registered or closed.
        let making = work.start { await anotherPage(of: flow) }
        guard let page = await making.wait() ?? nil, let url = try? WebURL(parsing: page) else { return nil }
        // The daemon's own page is at a name below `localhost`, so its URL need not be https.
        let isOwn = flow.awaited.ownPage.map { page.hasPrefix($0) } ?? false
        return isOwn || url.isSecure ? page : nil
    }

    /// The entrance's flow, if it has completed: the user who opens the entrance late is signed in already.
    public func completedFlow(entrance key: String) async -> FlowView? {
        await flowRegistry.completedFlow(entrance: key)
    }

    /// The daemon's page on which the sign-in goes on after a callback; nil if nothing is left to do there.
    public func ownPage(of id: String) async -> String? {
        guard let flow = await flowRegistry.entries[id]?.flow, flow.awaited.ownPage != nil else { return nil }
        return await anotherRequest(of: flow)?.authorizationURL
    }

    public func noteForeign(entrance key: String, uid: UInt32?) async {
        await flowRegistry.noteForeign(entrance: key, uid: uid)
    }

    private func anotherPage(of flow: Flow) async -> String? {
        if let request = await anotherRequest(of: flow) {
            if await flowRegistry.add(request, to: flow.id) { return request.authorizationURL }
            if request.redirectURI != flow.redirectURI {
                await callbackReceiver.close(request.redirectURI, flow.account.name)
            }
            return nil
        }
        // The provider accepts no second request, so the first one is used. Its address was in no argument list, and
        // the user's own programs may know it.
        guard await flowRegistry.isPending(flow.id), await flowRegistry.canBeOpened(flow.id) else { return nil }
        return flow.page
    }

    /// Nil if the provider accepts no second request, or if the two callbacks could not be told apart.
    private func anotherRequest(of flow: Flow) async -> (any AwaitedSignIn)? {
        let provider = flow.account.provider(with: tools)
        return (try? await provider.anotherPage(of: flow, in: signInContext)) ?? nil
    }
}

/// An entrance to the page that ends the user's session at the provider, whose URL may have the ID token in it. A
/// program opens the entrance, once, since every user of the machine can read its argument list.
struct PageEntrance: Sendable {
    let entrance: OpenAddress
    var page: String?

    static let lifetime: Duration = .seconds(60)
}

extension FlowRegistry {
    /// As many as one flow may have; with one more, the oldest is closed.
    func add(_ page: PageEntrance) async {
        pages.append(page)
        guard pages.count > OpenAddress.maxLive else { return }
        let oldest = pages.removeFirst().entrance
        await close(oldest.url, of: oldest.account)
    }

    func spendPage(entrance key: String) -> String? {
        guard let index = pages.firstIndex(where: { $0.entrance.key == key }) else { return nil }
        defer { pages[index].page = nil }
        return pages[index].page
    }

    func removePage(entrance key: String) async {
        guard let index = pages.firstIndex(where: { $0.entrance.key == key }) else { return }
        let over = pages.remove(at: index).entrance
        await close(over.url, of: over.account)
    }
}

extension Broker {
    /// An address for a program to open, once and within a minute; nil without a listener. Throws `entranceUnavailable`
    /// if none can be opened: then no program may be started with the page's URL.
    public func openURL(of page: EndSessionPage, _ account: AccountName) async throws(BrokerError) -> String? {
        guard let target = try? WebURL(parsing: page.url), target.isSecure else { return nil }
        let key = RandomToken.base64URL(bits: 256).revealed()
        guard let url = try await callbackReceiver.openEntrance(key, "", account) else { return nil }
        await flowRegistry.add(
            PageEntrance(entrance: OpenAddress(key: key, url: url, account: account), page: page.url))
        work.startTimer { [flowRegistry, clock] in
            // Two halves: no sleep is longer than 30 seconds.
            for _ in 0..<2 {
                guard (try? await clock.sleep(PageEntrance.lifetime / 2)) != nil else { return }
            }
            await flowRegistry.removePage(entrance: key)
        }
        return url
    }
}

/// A port that the caller fixes for one sign-in, to forward it from another machine. It can replace only a port that
/// Ringback would choose: one in the configuration was registered at the provider.
extension SignInRequest {
    func atCallbackPort(_ account: Account) throws(BrokerError) -> Account {
        guard let port = callbackPort else { return account }
        let template = account.redirectURI ?? "http://127.0.0.1:{port}/callback/\(account.name)"
        // `{port}` is not valid in a URL, so it is parsed with port 0.
        let text = template.replacing(":{port}", with: ":0", maxReplacements: 1)
        guard let url = try? WebURL(parsing: text), url.scheme == "http", url.isLoopback else {
            let text = "the callback of \(account.name) does not come to a port of this machine (redirect_uri)"
            throw .invalid(field: "callback_port", reason: .stated(text))
        }
        let stated = url.port ?? 80
        guard stated == 0 || stated == port else {
            let text = "the configuration of \(account.name) fixes the port \(stated) (redirect_uri)"
            throw .invalid(field: "callback_port", reason: .stated(text))
        }
        guard stated == 0, let range = text.firstRange(of: ":0") else { return account }
        var account = account
        account.redirectURI = "\(text[..<range.lowerBound]):\(port)\(text[range.upperBound...])"
        return account
    }
}
