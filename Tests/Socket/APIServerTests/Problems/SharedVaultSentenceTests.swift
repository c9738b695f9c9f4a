import BrokerCore
import SessionVault
import Testing

@testable import APIServer

@Suite struct `Sentences about a vault that hosts share` {
    private static let work = AccountName("work")

    @Test func `what another host does is said of the account`() throws {
        let work = try #require(Self.work)
        #expect(
            Reason.session(.heldElsewhere(work, wait: .seconds(40))).sentence
                == "Another host that shares the vault refreshes the session of work, or may have done so. It is "
                + "looked at again in 40 seconds at the latest.")
        #expect(
            Reason.session(.endUncertain(work)).sentence
                == "The provider refused the refresh tokens of work, but another host may have received a newer one. "
                + "It is asked again later. If no other host is left, sign in again.")
    }

    @Test func `a database that is away is said with the reason`() {
        #expect(
            VaultError.unreachable(.databaseAway(.timedOut)).sentence
                == "The vault's database cannot be reached: It did not answer in time.")
        #expect(
            VaultError.unreachable(.databaseRefused(.otherSchema(9))).sentence
                == "The vault's database did not do what was asked: Its schema is of version 9, which is not known here."
        )
    }
}
