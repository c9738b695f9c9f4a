import Glibc
import RingbackAPI
import RingbackBase
import SessionVault
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import KeptFiles
@testable import OAuthSignIn
@testable import SupabaseSignIn

/// The broker and the kinds of account know facts. Their sentences name the values, and differ where the facts do.
@Suite struct `The sentence of` {
    private static let work: AccountName = {
        guard let name = AccountName("work") else { preconditionFailure("a good name") }
        return name
    }()

    @Test(
        arguments: [
            (.anotherPending(work, method: .browser, age: 1), "work is pending: method browser, 1 second old."),
            (.anotherPending(work, method: .browser, age: 7), "7 seconds old."),
            (.noProofAwaited(.credential), "no passkey."), (.noProofAwaited(.code), "no code."),
            (.carriesTokens, "implicit flow"),
        ] as [(Reason, String)])
    func `a flow's reason`(reason: Reason, words: String) { #expect(reason.sentence.contains(words)) }

    @Test(
        arguments: [
            (.otherUser(work, held: "a@b", other: "c@d"), "work is signed in as a@b, and this sign-in is by c@d."),
            (.otherUser(work, held: nil, other: "c@d"), "signed in as an unnamed user, and this sign-in is by c@d."),
            (.notRefreshable(work, advice: nil), "work no refresh token. Sign in again when the session ends."),
            (.notRefreshable(work, advice: .stated("Ask.")), "when the session ends. Ask."),
            (.notDownscopable(work, advice: .stated("Ask.")), "a downscoped token cannot be requested. Ask."),
            (.noRoom(cause: .folderNotOpened(path: "/state/vault")), ": Cannot open /state/vault."),
        ] as [(SessionReason, String)])
    func `a session's reason`(reason: SessionReason, end: String) {
        #expect(Reason.session(reason).sentence.contains(end))
    }

    @Test(
        arguments: [
            (.noCallback(work, seconds: 45, redirectURI: "a://b", pushed: nil), "45 seconds. Waited for a callback"),
            (.noCallback(work, seconds: 600, redirectURI: "a://b", pushed: 60), "for 60 seconds and for one use."),
            (
                .noDeviceCode(work, seconds: 5, userCode: "WDJB-MJHT", page: "https://id.example/device"),
                "within 5 seconds. Waited for the code WDJB-MJHT to be entered at https://id.example/device."
            ),
            (.registrationInProgress(work, isNew: true), "Wait until it ends, or choose another name."),
            (.registrationInProgress(work, isNew: false), "Wait until it ends."),
            (.noDeviceEndpoint(work, isConfigured: true), "endpoints as device_authorization."),
            (
                .responseModeNotOffered(work, mode: "form_post", offered: ["query", "fragment"]),
                "response_mode = \"form_post\" cannot be used for work: the provider's metadata offer query, fragment."
            ),
            (.noRegistrationEndpoint(issuer: "https://id.example"), "https://id.example has no registration_endpoint"),
            (.leftover(.noDeletionURL(client: "c1", isTokenKept: true)), "The token for that is stored in the vault."),
            (.leftover(.maybeRegistered(client: nil)), "may have registered a client"),
            (.handedInSessionNotKept(isRevoked: false), "sign in again in the program that the session is from."),
        ] as [(OAuthReason, String)])
    func `a reason of OAuth`(reason: OAuthReason, words: String) {
        #expect(Reason.kind(KindFact(reason)).sentence.contains(words))
    }

    @Test(
        arguments: [
            (.notSupabase(work), "work is not"), (.notSupabase(nil), "This account is not"),
            (
                .expired(work, isChange: false, seconds: 300, .passkey),
                "sign-in of work was not finished within 5 minutes"
            ),
            (.expired(work, isChange: true, seconds: 3_600, .code), "change of the user of work was not finished"),
            (
                .expired(work, isChange: false, seconds: 300, .callback(redirectURI: "a://b", listed: "a://b?*")),
                "add this to the redirect URLs of the project: a://b?*"
            ),
            (
                .invalidToken(host: "ref.supabase.co", claim: "kid", cause: .keyNotPublished),
                "ref.supabase.co is not valid (kid): signed with a key that is not published."
            ),
            (.functionNotListed(work, key: "rpc", listed: ["a", "b"]), "in the list rpc of the account work: a, b"),
        ] as [(SupabaseReason, String)])
    func `a reason of Supabase`(reason: SupabaseReason, words: String) {
        #expect(Reason.kind(KindFact(reason)).sentence.contains(words))
    }

    @Test(
        arguments: [
            (.host("id.example", .stated("has no time")), "id.example has no time."),
            (.portUnusable(nil), "the listener cannot be opened."),
            (.portUnusable(ListenerFailure(.portTaken(by: getuid()), port: 80)), "80 is in use by a program of yours."),
            (
                .portUnusable(ListenerFailure(.system(call: "bind", errno: EACCES), port: 80)),
                "the port may not be used by this user (bind); configure another one."
            ),
        ] as [(Reason, String)])
    func `a finding`(reason: Reason, end: String) { #expect(reason.sentence.hasSuffix(end)) }

    @Test(
        arguments: [
            (.writableByOthers, "can be written by others"), (.foreignOwner(uid: 4_711), "belongs to uid 4711"),
            (.danglingLink, "is a link whose target"),
        ] as [(DirectoryTrust.Failure.Reason, String)])
    func `a directory that is not trusted`(reason: DirectoryTrust.Failure.Reason, words: String) {
        #expect(reason.sentence.hasPrefix(words))
    }

    @Test func `a kept file that cannot be written`() {
        let reason = FileReason.not("written", "/run/t", errno: ENOSPC)
        #expect(reason.sentence == "/run/t cannot be written: No space left on device.")
    }

    @Test func `advice follows what it is about`() {
        let advice = Reason.stated("Most providers issue one for the scope offline_access.")
        let detail = Problem(.sessionRanOut(Self.work, advice: advice), language: .english).detail
        #expect(detail?.hasPrefix("The session of work runs out") == true && detail?.hasSuffix(advice.sentence) == true)
        #expect(Reason.session(.lostScopes(Self.work, ["a", "b"])).sentence.contains("requested: a b. Sign in again"))
        #expect(
            Reason.session(.mayLoseScopes(Self.work, exchange: "access_denied")).sentence
                .contains("refused to exchange a token instead (access_denied). Request"))
    }

    @Test func `a second reason follows the first one with one full stop between them`() {
        let deleted = Reason.kind(KindFact(OAuthReason.leftover(.deleted)))
        let cut = BrokerError.provider(
            .unreachable(host: "id.example", reason: .both(.stated("it was cut off"), deleted)))
        #expect(
            Problem(cut, language: .english).detail
                == "id.example cannot be reached: it was cut off. The registration was deleted again.")
        let full = BrokerError.vaultFailed(.both(.stated("The disk is full."), deleted))
        #expect(
            Problem(full, language: .english).detail == "The disk is full. The registration was deleted again.")
    }

    @Test func `facts of two kinds of account are not the same`() {
        #expect(KindFact(OAuthReason.vaultInMemory) == KindFact(OAuthReason.vaultInMemory))
        #expect(KindFact(OAuthReason.vaultInMemory) != KindFact(OAuthReason.tokenAtFirstConsent))
        #expect(KindFact(OAuthReason.vaultInMemory) != KindFact(SupabaseReason.carriesTokens))
    }
}

@Suite struct `The sentence of the vault's` {
    private static let full = FileFailure(action: .write, path: "/s/a", code: ENOSPC)
    private static let fullSentence =
        "Cannot write /s/a: No space left on device; free some space on that file system."

    /// With every kind of value that a reason can have.
    private static let reasons: [VaultReason] = [
        .file(full), .folderNotOpened(path: "/s/vault"), .newer(path: "/s/a", version: 2),
        .tooLong(path: "/s/a", limit: 64), .damagedKeyFile(path: "/s/vault.key", folder: "/s/vault", .tooShort),
        .otherKey(.secretService, path: "/s/vault.key", folder: "/s/vault"),
        .keySourceDiffers(recorded: .keyFile, configured: .secretService), .keySourceMissing(.keyFile),
        .keptBy(.secretService, .keyringLocked), .noSuchKeeper(.keyFile), .notTaken(.secretService, .keyringLocked),
        .key(.file(full)), .keyFileMissing(path: "/s/vault.key", count: 3, folder: "/s/vault"),
        .foreignSessions(path: "/s/vault.key", count: 3, folder: "/s/vault"), .keyStays(.noSuchKeeper(.keyFile)),
        .notAnAccountName("../a"), .bindingTooLong(account: "work"), .tooLarge(.session, account: "work"),
        .otherVaultsKey(path: "/s/a"), .damaged(path: "/s/a", .changed, kind: .session, place: "/s/a.damaged-1"),
        .damagedInPlace(path: "/s/a", .changed, full), .databaseAway(.foreignServer(uid: 7)),
        .databaseRefused(.otherSchema(9)), .key(.missing(path: "/k/a.key")), .key(.noKey(path: "/k/a.key")),
        .key(.notAnIdentifier("../a")), .key(.notADirectory(path: "/k")), .key(.openToOthers(path: "/k")),
        .key(.insideState(path: "/k")), .key(.keyringNotAsked(cause: "cancelled")),
        .key(.noKeyring(cause: "there is no session bus")), .key(.keyringFailed(cause: "a cause")),
    ]

    @Test(arguments: reasons) func `reason names its paths, names and numbers`(reason: VaultReason) {
        for value in Self.values(of: reason) { #expect(reason.sentence.contains(value), "\(reason.sentence)") }
        for error in [
            VaultError.locked(reason), .unwritable(reason), .damaged(reason), .newer(reason), .refused(reason),
        ] {
            #expect(Reason.vault(error).sentence == reason.sentence)
        }
    }

    private static func values(of value: Any) -> [String] {
        switch value {
        case let text as String: [text]
        case let number as any FixedWidthInteger: ["\(number)"]
        case let choice as KeySourceChoice: [choice.rawValue]
        // Of a failed call the error's text is told, not its number.
        case let failure as FileFailure: [failure.path]
        default: Mirror(reflecting: value).children.flatMap { values(of: $0.value) }
        }
    }

    @Test(
        arguments: [
            (.damagedKeyFile(path: "/s/vault.key", folder: "/s/vault", .tooShort), "damaged: it is too short."),
            (.keptBy(.secretService, .keyringLocked), "kept by secret-service. The keyring is locked. Unlock it"),
            (.keyStays(.noSuchKeeper(.keyFile)), "to keep the vault's key. The vault's key stays where it was."),
            (.tooLarge(.registration, account: "work"), "The registration of work is larger than 1 MiB."),
            (.damaged(path: "/s/a", .changed, kind: .session, place: "/s/b"), "renamed to /s/b; sign in again."),
            (.damaged(path: "/s/a", .changed, kind: .people, place: "/s/b"), "renamed to /s/b; it is written again."),
            (.damagedInPlace(path: "/s/a", .changed, full), "its content was changed. " + fullSentence),
            (.databaseAway(.timedOut), "cannot be reached: It did not answer in time."),
            (.key(.noCredentials), "LoadCredential=ringback-vault-key."),
        ] as [(VaultReason, String)])
    func `reason joins the sentences of its parts`(reason: VaultReason, words: String) {
        #expect(reason.sentence.contains(words))
    }

    @Test(
        arguments: zip(
            FileFailure.Action.allCases,
            ["make", "move", "open", "read", "remove", "sync", "use", "write", "make room in", "set aside"]))
    func `failed call`(action: FileFailure.Action, verb: String) {
        #expect(
            FileFailure(action: action, path: "/s/a", code: EINTR).sentence
                == "Cannot \(verb) /s/a: Interrupted system call; try again.")
    }

    @Test(
        arguments: [
            (ENOSPC, "free some space on that file system"), (EDQUOT, "free some space, or have your quota raised"),
            (EROFS, "choose another state directory"), (EACCES, "it must be yours"), (EPERM, "it must be yours"),
            (EIO, "the disk reports errors"), (EMFILE, "raise the limit"), (ENFILE, "raise the limit"),
            (ENOENT, "it existed before"), (ESTALE, "it existed before"), (ELOOP, "of another kind is in its place"),
            (EISDIR, "of another kind is in its place"), (ENOTDIR, "of another kind is in its place"),
        ] as [(Int32, String)])
    func `advice about a failed call`(code: Int32, words: String) {
        let sentence = FileFailure(action: .write, path: "/s/a", code: code).sentence
        #expect(sentence.hasPrefix("Cannot write /s/a: ") && sentence.contains("; ") && sentence.contains(words))
    }

    @Test func `change that a power failure may undo`() {
        let failure = FileFailure(action: .write, path: "/s/a", code: EIO, isInDoubt: true)
        #expect(failure.sentence.contains("Input/output error (it is written, but may not survive a power cut); "))
    }

    @Test func `protection by memory says why there is no vault on disk`() {
        let words = "nothing is written to disk; sessions end with the daemon"
        #expect(VaultProtection.memory(reason: nil).sentence == words)
        #expect(
            VaultProtection.memory(reason: .noKeyDirectory).sentence
                == words + ". No vault could be made: There is no directory for a key file.")
        #expect(VaultProtection.keyFile(directory: "/k").sentence.contains("/k "))
    }
}
