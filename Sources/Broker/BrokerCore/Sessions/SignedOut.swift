internal import SessionVault

/// What a sign-out has done.
public struct SignedOut: Sendable {
    /// The account afterwards.
    public let account: AccountView
    /// False if there was nothing to sign out of.
    public let hadSession: Bool
    /// The provider has not been told of this sign-out or of an earlier one. It is told later, as long as the account
    /// is configured.
    public let isRevocationPending: Bool
    /// Nil if there was nothing to revoke.
    public let revocation: RevocationState?
    /// The session that ended, if the provider has not revoked it; nil otherwise.
    public let leftover: Leftover?

    /// The tokens that stay valid at the provider.
    public struct Leftover: Sendable {
        public let hasAccessToken: Bool
        public let hasRefreshToken: Bool
        /// Nil where the provider states no lifetime.
        public let accessTokenExpiry: WallInstant?
        public let refreshTokenExpiry: WallInstant?

        init(_ session: Session, by clock: BrokerClock) {
            let token = session.tokens[.own]
            hasAccessToken = token?.isValid(at: clock.bootInstant) == true
            accessTokenExpiry = token?.expiry?.wall(by: clock)
            hasRefreshToken = !session.refreshTokens.isEmpty
            refreshTokenExpiry = session.end?.wall(by: clock)
        }
    }
}

/// What has become of a revocation at the provider.
public enum RevocationState: Sendable, Equatable {
    case revoked
    /// The provider has no endpoint for it, or does not support it for such tokens.
    case notOffered
    /// It is sent later: the provider could not be reached.
    case pending
    /// The provider refused it. It is sent a few times more.
    case refused(BrokerError)
}

/// Tells the provider of a sign-out, then of earlier ones that it has not been told.
struct RevocationDelivery: Sendable {
    /// How long a sign-out waits for it. The revocation continues after that.
    private static let wait: Duration = .seconds(5)

    /// Nil if there is nothing to revoke.
    private let told: Promise<RevocationState>?
    private let earlier: Promise<Void>

    init(of closing: Closing, _ name: AccountName, by revocations: Revocations, in work: Work) {
        let told = closing.closed.map { closed in work.start { await revocations.deliver(closed) } }
        self.told = told
        earlier = work.start {
            _ = await told?.wait()
            await revocations.retry(name, besides: closing.closed?.retirement)
        }
    }

    /// What has become of it once it has ended, or after the wait.
    func outcome() async -> RevocationState? {
        let bound = RevocationDelivery.wait
        let end = ContinuousClock.now + bound
        guard let told else {
            _ = await earlier.wait(atMost: bound)
            return nil
        }
        let outcome = await told.wait(atMost: bound) ?? .pending
        _ = await earlier.wait(atMost: max(end - .now, .zero))
        return outcome
    }
}

extension VaultSlot {
    /// Where the users who have signed in under the same binding are remembered.
    var ofUsers: VaultSlot { VaultSlot(account: account, binding: binding, kind: .people) }
}
