import RingbackBase

@testable import BrokerCore
@testable import BrokerTestSupport

/// The time of every outcome.
let laneNow = BootInstant(milliseconds: 1_000_000)

func laneSession(_ subject: String, _ keeping: Session.Keeping = .vault) -> Session {
    var session = Session(
        refreshToken: Secret("refresh of \(subject)"), identity: nil, subject: subject,
        user: nil, scope: nil, issuer: "https://id.example", tokenEndpointOrigin: "https://id.example",
        signedInAt: WallInstant(seconds: 5),
        end: nil, rotation: .rotates,
        tokens: [.own: AccessToken(value: Secret("access of \(subject)"), type: "Bearer", scope: nil)])
    session.keeping = keeping
    return session
}

func reached(_ outcomes: LaneState.Outcome...) -> LaneState {
    var state = LaneState()
    for outcome in outcomes { _ = state.take(outcome, of: House.name, at: laneNow) }
    return state
}

func held(_ session: Session = laneSession("alice"), isUnsaved: Bool = false, isUrgent: Bool = false)
    -> LaneState.Outcome
{
    .loaded(.session(HeldSession(session, isUnsaved: isUnsaved, isUrgent: isUrgent)), isAfterReload: false)
}

/// What another host did is taken up, unless the session is not in the vault.
let changesElsewhere = [
    "changed elsewhere": "bob in vault", "signed out elsewhere": "absent", "ended elsewhere": "ended",
]

/// What becomes of a lane whose session has ended or is not readable.
let changesOfAbsent = changesElsewhere.merging([
    "opened": "bob in vault", "sign-in began": "absent", "sign-out began": "absent", "locked": "loading",
    "replaced": "loading",
]) { $1 }
