internal import BrokerCore
internal import Cryptography

/// A sign-in on a page of our own. Each method that the user chooses there adds a request to this flow; a callback or
/// code of any of these requests completes the flow.
struct PageFlow: AwaitedSignIn {
    let session: PageSession
    let key = Arrival.digest(of: RandomToken.identifier())

    var redirectURI: String { "" }
    var authorizationURL: String { session.address }
    var ownPage: String? { session.address }
    var waitingFor: WaitingFor { .page }
    var proofs: Set<Proof.Kind> { [] }
    var isAccompanied: Bool { true }

    var details: AwaitedDetails {
        var details = AwaitedDetails()
        details.words = session.words
        details.isRecovery = session.snapshot.opened?.isRecovery ?? false
        return details
    }

    func recognize(_ arrival: Arrival, of standing: FlowStanding) -> Recognition { .foreign }

    func expiry(of flow: Flow) -> Reason {
        .supabase(.expired(flow.account.name, isChange: false, seconds: flow.duration.wholeSeconds, .page))
    }
}

struct PageTicket: AwaitedSignIn {
    let authorizationURL: String
    private let page: PageFlow
    let key = Arrival.digest(of: RandomToken.identifier())

    init(_ address: String, of page: PageFlow) {
        authorizationURL = address
        self.page = page
    }

    var redirectURI: String { "" }
    var waitingFor: WaitingFor { .page }
    var proofs: Set<Proof.Kind> { [] }

    func recognize(_ arrival: Arrival, of standing: FlowStanding) -> Recognition { .foreign }
    func expiry(of flow: Flow) -> Reason { page.expiry(of: flow) }
}

/// The user's input on the page, as a proof for the page's flow.
struct PageProof {
    enum Step: Sendable {
        case password, signUp
        case code(SupabaseFlow, TypedCode)
        /// Another user than the account's has signed in, and takes the account over.
        case switchUser(PageSession.OtherUser)
    }

    let step: Step
    let fields: SupabaseSignInFields
}

struct PageRedeeming: Sendable {
    let provider: SupabaseProvider
    let flow: Flow
    let context: SignInContext

    /// The error for a sign-in of another user than the account's. It does not end the flow.
    static let otherUser = BrokerError.conflict(
        .stated("The account is signed in as another user. Nothing was changed."))

    func redeem(_ proof: PageProof) async throws(RedemptionFailure) -> Redemption {
        let request = flow.request.choosing(proof.fields)
        let start = FlowStart(provider: provider, context: context, request: request)
        switch proof.step {
        case .code(let sent, let typed):
            return try await Redeeming(provider: provider, flow: flow, awaited: sent, context: context).code(typed)
        case .password:
            return try await RedemptionFailure.mapping(endsFlow: false) { () throws(BrokerError) in
                try await context.admitSession(flow.account.name)
                let session = try await start.sessionByPassword()
                return .session(session, provider.opening(session, request))
            }
        case .switchUser(let other):
            var opening = other.opening
            opening.switchesSubject = true
            return .session(other.session, opening)
        case .signUp:
            return try await RedemptionFailure.mapping(endsFlow: false) { () throws(BrokerError) in
                try await context.admitSession(flow.account.name)
                switch try await start.signedUp() {
                case .session(let session): return .session(session, provider.opening(session, request))
                case .message(let message):
                    guard await context.add(message, to: flow) else { throw .flowEnded }
                    (flow.firstAwaited as? PageFlow)?.session.note(message, at: context.tools.clock.bootInstant)
                    return .waiting(nil)
                }
            }
        }
    }
}

extension SignInRequest {
    /// The request that started the page, with the user's input as its fields, and `isPersistent` as it was.
    func choosing(_ fields: SupabaseSignInFields) -> SignInRequest {
        var request = self
        var fields = fields
        fields.isPersistent = project?.isPersistent ?? true
        request.project = fields
        return request
    }
}
