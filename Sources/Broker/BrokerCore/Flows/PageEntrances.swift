internal import Cryptography
internal import HTTPMessages
internal import Secrets

/// An entrance to a page that belongs to no flow: the page that ends the user's session at the provider. Its URL may
/// have the ID token in it, and a program that opens a page has its address in its argument list, which every user of
/// the machine can read. So a program opens the entrance, once.
struct PageEntrance: Sendable {
    let entrance: FlowEntrance
    /// Nil once a browser was sent to it.
    var page: String?

    /// How long a browser may take to open it.
    static let lifetime: Duration = .seconds(60)
}

extension FlowRegistry {
    /// Notes an entrance that has been opened. There may be as many as one flow may have; with one more, the oldest is
    /// closed.
    func add(_ page: PageEntrance) async {
        pages.append(page)
        guard pages.count > FlowEntrance.maxLive else { return }
        let oldest = pages.removeFirst().entrance
        await close(oldest.url, of: oldest.account)
    }

    /// Uses up an entrance. Returns its page; nil if the entrance is no longer valid.
    func spendPage(entrance key: String) -> String? {
        guard let index = pages.firstIndex(where: { $0.entrance.key == key }) else { return nil }
        defer { pages[index].page = nil }
        return pages[index].page
    }

    /// Closes an entrance whose time is over.
    func removePage(entrance key: String) async {
        guard let index = pages.firstIndex(where: { $0.entrance.key == key }) else { return }
        let over = pages.remove(at: index).entrance
        await close(over.url, of: over.account)
    }
}

extension Broker {
    /// An address for a program to open, once and within a minute: it sends the user's browser on to the page. Nil if
    /// there is no listener for such addresses. Throws `entranceUnavailable` if no such address can be opened. Then no
    /// program may be started with the page's URL.
    public func openURL(of page: EndSessionPage, _ account: AccountName) async throws(BrokerError) -> String? {
        guard let target = try? WebURL(parsing: page.url), target.isSecure else { return nil }
        let key = RandomToken.base64URL(bits: 256).revealed()
        guard let url = try await callbackReceiver.openEntrance(key, "", account) else { return nil }
        await flowRegistry.add(
            PageEntrance(entrance: FlowEntrance(key: key, url: url, account: account), page: page.url))
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
