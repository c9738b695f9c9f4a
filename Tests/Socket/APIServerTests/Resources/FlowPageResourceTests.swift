import RingbackBase
import Synchronization
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(5))) struct `Opening a flow's page by the daemon` {
    /// What was opened, as `ACCOUNT URL TOKEN`.
    private final class Browser: Sendable {
        let opened = Mutex<[String]>([])
        let failure = Mutex<String?>(nil)

        @Sendable func open(_ url: String, _ account: AccountName, _ token: String?) async -> String? {
            if let reason = failure.withLock({ $0 }) { return reason }
            opened.withLock { $0.append("\(account) \(url) \(token ?? "-")") }
            return nil
        }
    }

    private let browser = Browser()

    @Test func `the account's browser gets an address of its own, without a state`() async throws {
        let house = try await APIHouse(openPage: browser.open)
        let flow = await house.ask("POST", "/v1/accounts/work/sign-in", "{}")
        let id = try #require(flow["id"]?.string)
        let answer = await house.ask("POST", "/v1/flows/\(id)/open", #"{"activation_token":"t"}"#)
        #expect(answer.status == 200)
        let url = try #require(answer["open_url"]?.string)
        #expect(url.hasPrefix("http://127.0.0.1:4711/start/") && url != flow["open_url"]?.string)
        #expect(browser.opened.withLock { $0 } == ["work \(url) t"])
        // A second call opens it again, at another address.
        #expect(await house.ask("POST", "/v1/flows/\(id)/open").status == 200)
        #expect(browser.opened.withLock { $0.last?.hasSuffix(" -") == true && !$0.contains("work \(url) -") })
    }

    @Test func `a browser that cannot be started is reported with its reason`() async throws {
        let house = try await APIHouse(openPage: browser.open)
        browser.failure.withLock { $0 = "the program was not started: there is no program firefox" }
        let flow = await house.ask("POST", "/v1/accounts/work/sign-in", "{}")
        let answer = await house.ask("POST", "/v1/flows/\(flow["id"]?.string ?? "")/open")
        #expect(answer.code == "state_conflict" && answer["cause"] == "browser_not_started")
        #expect(
            answer["detail"]
                == "No browser was started: the program was not started: there is no program firefox.")
    }

    @Test func `an unknown flow, an ended one and one without a page are refused`() async throws {
        let house = try await APIHouse(openPage: browser.open)
        #expect(await house.ask("POST", "/v1/flows/nothing/open").code == "flow_not_found")
        let flow = await house.ask("POST", "/v1/accounts/work/sign-in", "{}")
        let path = "/v1/flows/\(flow["id"]?.string ?? "")"
        await house.ask("DELETE", path)
        #expect(await house.ask("POST", path + "/open").code == "flow_expired")
        let other = try await APIHouse()
        let unreachable = await other.ask("POST", "/v1/accounts/work/sign-in", "{}")
        let refused = await other.ask("POST", "/v1/flows/\(unreachable["id"]?.string ?? "")/open")
        #expect(refused.code == "state_conflict" && refused["cause"] == nil)
        #expect(browser.opened.withLock { $0.isEmpty })
    }

    @Test func `an account shows its browser`() async throws {
        let house = try await APIHouse()
        var account = try APIHouse.account("work")
        account.page.browser = ["firefox", "-P", "work"]
        try await house.configure([account])
        let shown = await house.ask("GET", "/v1/accounts/work")["browser"]
        #expect(shown?.array?.compactMap(\.string) == ["firefox", "-P", "work"])
    }
}
