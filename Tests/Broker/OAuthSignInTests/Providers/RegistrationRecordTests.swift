import OAuth
import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite struct `A registration's record` {
    @Test func `comes back as it was, whole or bare`() {
        let whole = RegistrationRecord(
            issuer: "https://id.example", clientID: "c \"1\"", secret: Secret("s"),
            secretExpiresAt: WallInstant(seconds: 5),
            managements: [RegistrationManagement(token: Secret("t"), uri: "https://id.example/r")],
            registeredAt: WallInstant(seconds: 7))
        let bare = RegistrationRecord(
            issuer: "https://id.example", clientID: nil,
            managements: [
                RegistrationManagement(token: Secret("t"), uri: nil),
                RegistrationManagement(token: Secret("u"), uri: "v"),
            ], registeredAt: WallInstant(seconds: 7))
        for record in [whole, bare] { #expect(RegistrationRecord(decoding: record.encoded()) == record) }
    }

    @Test(arguments: ["", "{}", #"{"version":2,"issuer":"x"}"#, #"{"version":1}"#])
    func `of another kind is not read`(text: String) {
        #expect(RegistrationRecord(decoding: Secret(text)) == nil)
    }

    @Test func `has a slot of its own, which is never a session's`() {
        let slot = RegistrationRecord.slot(House.name, issuer: "https://id.example", clientID: "ringback")
        let session = House.account().slot
        #expect(slot.account == session.account && slot.binding == session.binding && slot != session)
        #expect(RegistrationRecord.slot(House.name, issuer: "https://id.example", clientID: nil) != slot)
    }
}
