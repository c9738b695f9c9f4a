import BrokerCore
import RingbackBase
import Testing

@testable import APIServer
@testable import BrokerTestSupport

@Suite(.timeLimit(.minutes(5))) struct `Flows on the socket` {
    @Test func `a flow is read, listed, waited for and cancelled`() async throws {
        let house = try await APIHouse()
        let flow = await house.ask("POST", "/v1/accounts/work/sign-in")
        await house.ask("POST", "/v1/accounts/work/sign-in")
        let id = try #require(flow["id"]?.string)
        #expect(await house.ask("GET", "/v1/flows/\(id)").json == flow.json)
        #expect(await house.ask("GET", "/v1/flows")["flows"]?.array == [flow.json])
        let waiting = Task { await house.ask("GET", "/v1/flows/\(id)?wait=30") }
        #expect(await house.ask("DELETE", "/v1/flows/\(id)")["status"] == "pending")
        let last = await house.ask("DELETE", "/v1/flows/\(id)?all=false")
        #expect(last["status"] == "cancelled")
        // What was secret enough for the browser only is not shown of a flow that has ended.
        #expect(last["authorization_url"] == nil)
        #expect(last["waiting_for"] == nil)
        #expect(await waiting.value["status"] == "cancelled")
        #expect(await house.ask("DELETE", "/v1/flows/\(id)?all=true").status == 200)
        let joined = await house.ask("POST", "/v1/accounts/work/sign-in")
        await house.ask("POST", "/v1/accounts/work/sign-in")
        #expect(await house.ask("DELETE", "/v1/flows/\(joined["id"]?.string ?? "")?all=true")["status"] == "cancelled")
    }

    @Test func `an unknown flow and a wrong number are said so`() async throws {
        let house = try await APIHouse()
        for (method, target) in [("GET", "/v1/flows/x"), ("DELETE", "/v1/flows/x"), ("GET", "/v1/flows/x?wait=9")] {
            let answer = await house.ask(method, target)
            #expect(answer.code == "flow_not_found")
        }
        for target in ["?wait=", "?wait=-1", "?wait=1.5", "?wait=+1", "?wait=1s", "?wait=0x1"] {
            #expect(await house.ask("GET", "/v1/flows/x\(target)").code == "validation_failed")
        }
        for target in ["?all=1", "?all=", "?all=TRUE"] {
            #expect(await house.ask("DELETE", "/v1/flows/x\(target)").code == "validation_failed")
        }
    }

    @Test func `a genuine callback ends in a completed flow`() async throws {
        let house = try await APIHouse()
        let flow = try await house.signIn()
        #expect(flow["status"] == "completed")
        #expect(flow["error"] == nil)
        #expect(await house.ask("GET", "/v1/flows/\(flow["id"]?.string ?? "")").json == flow)
    }

    @Test func `a callback of nobody is 400, one of an ended flow 410`() async throws {
        let house = try await APIHouse()
        let flow = await house.ask("POST", "/v1/accounts/work/sign-in")
        let callback = try house.provider.consent(try #require(flow["authorization_url"]?.string))
        for url in [
            "", "x", "http://127.0.0.1:4711/callback/work", callback + "&state=x", callback + "&error=access_denied",
            "\(callback)#access_token=x", "http://127.0.0.1:4711/callback/work?code=x&state=unknown",
            callback.replacing("4711", with: "4712"), String(repeating: "x", count: 20_000),
        ] {
            let answer = await house.deliver(url)
            #expect(answer.code == "invalid_callback")
            #expect(answer["user_message"] == "Sign in failed. Please try again.")
        }
        #expect(await house.deliver(callback).status == 200)
        #expect(await house.deliver(callback).status == 200)
        house.clock.advance(by: 6)
        let late = await house.deliver(callback)
        #expect(late.code == "flow_expired")
    }

    @Test(arguments: [#"{}"#, #"{"url":null}"#, #"{"url":1}"#, #"{"URL":"x"}"#])
    func `a callback needs its URL`(body: String) async throws {
        let answer = try await APIHouse().ask("POST", "/v1/callbacks", body)
        #expect(answer.code == "validation_failed")
    }

    @Test func `a denial is a failed flow without words for the person`() async throws {
        let house = try await APIHouse()
        let flow = await house.ask("POST", "/v1/accounts/work/sign-in")
        let callback = try house.provider.consent(try #require(flow["authorization_url"]?.string))
        let denial = callback.replacing(
            "code=authorization-7", with: "error=access_denied&error_description=%3Cscript%3E")
        let answer = await house.deliver(denial)
        #expect(answer.status == 200)
        #expect(answer["flow"]?["status"] == "failed")
        #expect(answer["flow"]?["error"]?["code"] == "access_denied")
        #expect(answer["flow"]?["error"]?["status"] == 403)
        #expect(answer["flow"]?["user_message"] == nil)
        #expect(!answer.text.contains("script"))
    }

    @Test func `a provider that has no time says so through the browser`() async throws {
        let house = try await APIHouse()
        let flow = await house.ask("POST", "/v1/accounts/work/sign-in")
        let callback = try house.provider.consent(try #require(flow["authorization_url"]?.string))
        let answer = await house.deliver(
            callback.replacing("code=authorization-7", with: "error=temporarily_unavailable"))
        #expect(answer["flow"]?["error"]?["code"] == "provider_unreachable")
        #expect(answer["flow"]?["error"]?["detail"] == "The provider is not available for now.")
        #expect(answer["flow"]?["user_message"] == "Service temporarily unavailable. Please try again later.")
    }

    @Test func `the provider's refusal comes with its words`() async throws {
        let house = try await APIHouse()
        house.provider.answerNext(
            .init(status: 400, body: #"{"error":"invalid_grant","error_description":"the code is used"}"#))
        let flow = try await house.signIn()
        #expect(flow["status"] == "failed")
        #expect(flow["error"]?["code"] == "provider_error")
        #expect(flow["error"]?["provider_code"] == "invalid_grant")
        #expect(flow["error"]?["provider_message"] == "the code is used")
        #expect(flow["user_message"] == "Sign in failed. Please try again.")
    }

    @Test func `a deadline that has passed is told with what was awaited`() async throws {
        let house = try await APIHouse()
        let flow = await house.ask("POST", "/v1/accounts/work/sign-in")
        let callback = try house.provider.consent(try #require(flow["authorization_url"]?.string))
        house.clock.advance(by: 601)
        #expect(await house.deliver(callback).status == 410)
        let expired = await house.ask("GET", "/v1/flows/\(flow["id"]?.string ?? "")")
        #expect(expired["status"] == "expired")
        #expect(expired["error"]?["detail"]?.string?.contains("http://127.0.0.1:4711/callback/work") == true)
        #expect(await house.ask("GET", "/v1/accounts/work")["error"]?["code"] == "flow_expired")
    }
}
