internal import LocalHTTP

/// What is below one issuer's URL: the authorization server, the Supabase project, and what tests switch and observe.
struct ProviderState {
    private let origin: String
    private let prefix: String
    let options: SandboxOptions
    var server: AuthorizationServer
    var supabase: SupabaseProject
    var faults = Faults()
    var log = RequestLog()
    /// Seconds that the issuer's clock is ahead.
    var clockOffset = 0

    init(origin: String, prefix: String, options: SandboxOptions) {
        self.origin = origin
        self.prefix = prefix
        self.options = options
        server = AuthorizationServer(origin: origin, prefix: prefix, options: options)
        supabase = SupabaseProject(url: server.issuer.name)
    }

    /// The correct response of an endpoint.
    mutating func answer(_ request: SandboxRequest, _ endpoint: Endpoint, at now: Int) -> ServerResponse {
        endpoint.isSupabase
            ? supabase.answer(request, endpoint, upstream: &server, at: now)
            : server.answer(request, endpoint, at: now)
    }

    mutating func apply(_ document: ControlDocument, at now: Int) throws(ControlDocument.Mistake) {
        if document.resets { reset() }
        if document.clears {
            faults = Faults()
            server.issuer.perturbations = Perturbations()
        }
        server.apply(document)
        faults.add(document.faults)
        clockOffset += document.clockAdvance
        if document.rotatesKeys { supabase.accounts.keys.rotate(keepsPublished: document.keepsFormerKeys) }
        if case .everybody = document.revokedUser {
            server.issuer.counters.endedSessions += supabase.accounts.sessions.end { _ in true }
        }
        try document.supabase?.apply(to: &supabase, at: now + clockOffset)
        if let device = document.device { server.devices.decide(device, &server.issuer, at: now + clockOffset) }
    }

    /// As it was started. The keys are kept: making them takes time, and no test can tell the difference.
    private mutating func reset() {
        var fresh = ProviderState(origin: origin, prefix: prefix, options: options)
        fresh.server.issuer.keys = server.issuer.keys
        fresh.supabase.accounts.keys = supabase.accounts.keys
        self = fresh
    }
}
