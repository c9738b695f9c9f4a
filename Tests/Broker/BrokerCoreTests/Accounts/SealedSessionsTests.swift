import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(5))) struct `Sessions of accounts that are not configured` {
    @Test func `a vault that does not answer holds up nobody who asks for them`() async throws {
        let house = try await House()
        try await house.signIn()
        await house.broker.configure([])
        let sealed = SealedSessions(of: house.broker)
        #expect(await sealed.list(atMost: .seconds(30))?.map(\.account) == ["work"])

        await house.vault.hold()
        #expect(await sealed.list(atMost: .milliseconds(50)) == nil)

        await house.vault.release()
        #expect(await sealed.list(atMost: .seconds(30))?.map(\.account) == ["work"])
    }
}
