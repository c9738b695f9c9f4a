internal import BrokerCore

/// Records the linked identities of users at Supabase projects, and caches the apps' rows.
struct SupabaseObserver: SessionObserver {
    let identities: IdentityObserver
    let profiles: SupabaseProfiles

    func opened(_ session: Session, over former: Session?, of account: Account, isAsked: Bool) async {
        await identities.opened(session, over: former, of: account, isAsked: isAsked)
    }

    func changed(_ former: Session, to session: Session, of account: Account, isAsked: Bool) async {
        await identities.changed(former, to: session, of: account, isAsked: isAsked)
    }

    func leaving(_ session: Session, of account: Account) async { await identities.leaving(session, of: account) }

    func willPost(
        _ kind: BrokerEvent.Kind, of account: Account, _ session: Session?, in sessions: SessionAccess
    ) {
        switch kind {
        case .signedOut: profiles.forget(account.name)
        case .signedIn, .userUpdated, .passwordRecovery: profiles.renew(account, in: sessions)
        case .initialSession where session != nil && !profiles.isAwaited(account.name):
            profiles.renew(account, in: sessions)
        default: break
        }
    }

    func forget(_ account: AccountName) { profiles.forget(account) }
}
