import Glibc
import KeptFiles
import RingbackAPI
import RingbackBase
import SessionVault
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import OAuthSignIn
@testable import SupabaseSignIn

/// The broker and the kinds of account know facts. What a user reads of them is here, letter by letter.
@Suite struct `The sentence of` {
    private static let work: AccountName = {
        guard let name = AccountName("work") else { preconditionFailure("a good name") }
        return name
    }()

    @Test(
        arguments: [
            (
                .anotherPending(work, method: .browser, age: 1),
                "Another sign-in of work is pending: method browser, 1 second old."
            ),
            (
                .anotherPending(work, method: .browser, age: 7),
                "Another sign-in of work is pending: method browser, 7 seconds old."
            ),
            (.tooManyPending(most: 16), "16 sign-ins are pending already. Finish or cancel one of them."),
            (.noProofAwaited(.credential), "This sign-in waits for no passkey."),
            (.noProofAwaited(.code), "This sign-in waits for no code."),
            (
                .carriesTokens,
                "The callback carries tokens (implicit flow), which is not accepted, because they were exposed. Configure "
                    + "the provider for the authorization code flow with PKCE."
            ),
            (.unknownState, "No pending sign-in has this state. It may have been finished or cancelled."),
        ] as [(FlowReason, String)])
    func `a flow's reason`(reason: FlowReason, sentence: String) {
        #expect(Reason.flow(reason).sentence == sentence)
    }

    @Test(
        arguments: [
            (
                .otherUser(work, held: "a@example.org", other: "b@example.org"),
                "work is signed in as a@example.org, and this sign-in is by b@example.org. Nothing was changed. Sign "
                    + "out first, or ask to switch."
            ),
            (
                .notRefreshable(work, advice: nil),
                "The provider gave work no refresh token. Sign in again when the session ends."
            ),
            (
                .notRefreshable(work, advice: .stated("Ask.")),
                "The provider gave work no refresh token. Sign in again when the session ends. Ask."
            ),
            (
                .notDownscopable(work, advice: .stated("Ask.")),
                "The provider gave work no refresh token, so a downscoped token cannot be requested. Ask."
            ),
            (
                .noRoom(cause: .folderNotOpened(path: "/state/vault")),
                "The session was not refreshed, since a new refresh token could not be kept safe: Cannot open "
                    + "/state/vault."
            ),
        ] as [(SessionReason, String)])
    func `a session's reason`(reason: SessionReason, sentence: String) {
        #expect(Reason.session(reason).sentence == sentence)
    }

    @Test(
        arguments: [
            (
                .noCallback(work, seconds: 45, redirectURI: "http://127.0.0.1:8400/", pushed: nil),
                "The sign-in of work was not finished within 45 seconds. Waited for a callback to http://127.0.0.1:8400/."
            ),
            (
                .noCallback(work, seconds: 600, redirectURI: "myapp://cb", pushed: 60),
                "The sign-in of work was not finished within 600 seconds. Waited for a callback to myapp://cb. The URL "
                    + "of its sign-in page was valid for 60 seconds and for one use. Start the sign-in again for a new "
                    + "one."
            ),
            (
                .noDeviceCode(work, seconds: 5, userCode: "WDJB-MJHT", page: "https://id.example/device"),
                "The sign-in of work was not finished within 5 seconds. Waited for the code WDJB-MJHT to be entered at "
                    + "https://id.example/device."
            ),
            (
                .registrationInProgress(work, isNew: true),
                "A registration for work is in progress. Wait until it ends, or choose another name."
            ),
            (
                .registrationInProgress(work, isNew: false),
                "A registration for work is in progress. Wait until it ends."
            ),
            (
                .noDeviceEndpoint(work, isConfigured: true),
                "The provider of work offers no sign-in on another device (RFC 8628). If it has an endpoint for that, "
                    + "add it to the account's endpoints as device_authorization."
            ),
            (
                .responseModeNotOffered(work, mode: "form_post", offered: ["query", "fragment"]),
                "response_mode = \"form_post\" cannot be used for work: the provider's metadata offer query, fragment. "
                    + "Leave response_mode out."
            ),
            (
                .noRegistrationEndpoint(issuer: "https://id.example"),
                "https://id.example has no registration_endpoint, so it registers no clients automatically. Register "
                    + "the client at the provider by hand, and set client_id of the account."
            ),
            (
                .vaultInMemory,
                "The vault is in memory: the registration's secrets would be lost when the daemon stops. Register the "
                    + "client by hand, and set client_id of the account."
            ),
            (
                .leftover(.noDeletionURL(client: "c1", isTokenKept: true)),
                "The provider has registered the client c1, but sent no URL to delete it. The token for that is stored "
                    + "in the vault."
            ),
            (
                .leftover(.maybeRegistered(client: nil)),
                "The provider may have registered a client, but sent no token to delete it."
            ),
            (
                .handedInSessionNotKept(isRevoked: false),
                "Nothing was stored. The provider had replaced the refresh token: sign in again in the program that the "
                    + "session is from."
            ),
        ] as [(OAuthReason, String)])
    func `a reason of OAuth`(reason: OAuthReason, sentence: String) {
        #expect(Reason.kind(KindFact(reason)).sentence == sentence)
    }

    @Test(
        arguments: [
            (.notSupabase(work), "work is not at a Supabase project."),
            (.notSupabase(nil), "This account is not at a Supabase project."),
            (
                .expired(work, isChange: false, seconds: 300, .passkey),
                "The sign-in of work was not finished within 300 seconds. Waited for the response of a passkey."
            ),
            (
                .expired(work, isChange: true, seconds: 3_600, .code),
                "The change of the user of work was not finished within 3600 seconds. Waited for the code that was sent."
            ),
            (
                .expired(work, isChange: false, seconds: 300, .callback(redirectURI: "a://b", listed: "a://b?*")),
                "The sign-in of work was not finished within 300 seconds. Waited for a callback to a://b. If the browser "
                    + "went to another page, add this to the redirect URLs of the project: a://b?*"
            ),
            (
                .invalidToken(host: "ref.supabase.co", claim: "kid", cause: .keyNotPublished),
                "The access token of ref.supabase.co is not valid (kid): signed with a key that is not published."
            ),
            (
                .functionNotListed(work, listed: ["a", "b"]),
                "it is not among the functions of work (rpc = [a, b]); only functions in this list can be called"
            ),
        ] as [(SupabaseReason, String)])
    func `a reason of Supabase`(reason: SupabaseReason, sentence: String) {
        #expect(Reason.kind(KindFact(reason)).sentence == sentence)
    }

    @Test(
        arguments: [
            (.host("id.example", .stated("has no time")), "id.example has no time."),
            (.portUnusable(nil), "The callback cannot arrive: the listener cannot be opened."),
            (
                .portUnusable(ListenerFailure(.portTaken(by: getuid()), port: 80)),
                "The callback cannot arrive: port 80 is in use by a program of yours."
            ),
            (
                .portUnusable(ListenerFailure(.system(call: "bind", errno: EACCES), port: 80)),
                "The callback cannot arrive: the port may not be used by this user (bind); configure another one."
            ),
        ] as [(Reason, String)])
    func `a finding`(reason: Reason, sentence: String) { #expect(reason.sentence == sentence) }

    @Test(
        arguments: [
            (.notWritten(path: "/run/t", errno: 28), "/run/t cannot be written: No space left on device."),
            (
                .left(.ofOtherProgram(path: "/run/t")),
                "/run/t was written by another program. It is neither overwritten nor removed."
            ),
            (
                .folderOpenToOthers(path: "/a/t", .init(path: "/a", reason: .writableByOthers)),
                "/a/t is not kept: /a can be written by others, who could replace what is in it."
            ),
            (
                .folderOpenToOthers(path: "/a/t", .init(path: "/a", reason: .foreignOwner(uid: 4_711))),
                "/a/t is not kept: /a belongs to uid 4711, neither you (uid \(geteuid())) nor root, who could replace "
                    + "what is in it."
            ),
            (
                .folderOpenToOthers(path: "/a/t", .init(path: "/a", reason: .danglingLink)),
                "/a/t is not kept: /a is a link whose target does not exist. Remove it."
            ),
            (
                .recordNotWritten(.unwritable(.folderNotOpened(path: "/state"))),
                "The record of the kept files cannot be written: Cannot open /state."
            ),
        ] as [(FileReason, String)])
    func `a kept file's reason`(reason: FileReason, sentence: String) {
        #expect(Reason.kind(KindFact(reason)).sentence == sentence)
    }

    @Test func `a user without an address or a subject is called unnamed`() {
        #expect(
            Reason.session(.otherUser(Self.work, held: nil, other: "b")).sentence
                == "work is signed in as an unnamed user, and this sign-in is by b. Nothing was changed. Sign out first, "
                + "or ask to switch.")
    }

    @Test func `advice follows what it is about`() {
        let advice = Reason.stated("Most providers issue one for the scope offline_access.")
        #expect(
            Problem(.sessionRanOut(Self.work, advice: advice), language: .english).detail
                == "The session of work runs out, and the provider gave no refresh token to renew it. Most providers "
                + "issue one for the scope offline_access.")
        #expect(
            Reason.session(.endsWithToken(Self.work, advice: nil)).sentence
                == "The provider gave work no refresh token: the session ends with its access token. When it ends, sign "
                + "in again.")
        #expect(
            Reason.session(.lostScopes(Self.work, ["a", "b"])).sentence
                == "The session of work lost scopes when a token with fewer scopes was requested: a b. Sign in again to "
                + "get them back. Ringback does not request such tokens of this provider any more.")
        #expect(
            Reason.session(.mayLoseScopes(Self.work, exchange: "access_denied")).sentence
                == "It is not known whether the session of work keeps its scopes at the provider when a token with fewer "
                + "scopes is requested. A restricted socket does not risk them. The provider refused to exchange a token "
                + "instead (access_denied). Request a token with fewer scopes once without the restricted socket: its "
                + "result is remembered.")
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

/// The vault knows facts. What a user reads of them is here, letter by letter.
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
            (
                .damagedKeyFile(path: "/s/vault.key", folder: "/s/vault", .tooShort),
                "/s/vault.key is damaged: it is too short. It was not changed. Restore it from a backup. Without this "
                    + "file the sealed sessions cannot be read. To give them up, move /s/vault.key and /s/vault away."
            ),
            (
                .keptBy(.secretService, .keyringLocked),
                "The vault's key is kept by secret-service. The keyring is locked. Unlock it, and this goes on by "
                    + "itself."
            ),
            (
                .keyStays(.noSuchKeeper(.keyFile)),
                "key-file is not available here to keep the vault's key. The vault's key stays where it was."
            ),
            (.tooLarge(.registration, account: "work"), "The registration of work is larger than 1 MiB."),
            (
                .damaged(path: "/s/a", .changed, kind: .session, place: "/s/a.damaged-1"),
                "/s/a cannot be read: its content was changed. It was renamed to /s/a.damaged-1; sign in again."
            ),
            (
                .damaged(path: "/s/a", .changed, kind: .people, place: "/s/a.damaged-1"),
                "/s/a cannot be read: its content was changed. It was renamed to /s/a.damaged-1; it is written again."
            ),
            (
                .damagedInPlace(path: "/s/a", .changed, full),
                "/s/a cannot be read: its content was changed. " + fullSentence
            ),
            (.databaseAway(.timedOut), "The vault's database cannot be reached: It did not answer in time."),
            (
                .key(.noCredentials),
                "The daemon was started without credentials (CREDENTIALS_DIRECTORY is not set); start it as a unit with "
                    + "LoadCredential=ringback-vault-key."
            ),
        ] as [(VaultReason, String)])
    func `reason joins the sentences of its parts`(reason: VaultReason, sentence: String) {
        #expect(reason.sentence == sentence)
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
            (ENOSPC, "No space left on device; free some space on that file system"),
            (EDQUOT, "Disk quota exceeded; free some space, or have your quota raised"),
            (EROFS, "Read-only file system; make that file system writable, or choose another state directory"),
            (EACCES, "Permission denied; it must be yours, directories with mode 0700 and files with 0600"),
            (EPERM, "Operation not permitted; it must be yours, directories with mode 0700 and files with 0600"),
            (EIO, "Input/output error; the disk reports errors: look into the kernel's log and save your data"),
            (EMFILE, "Too many open files; close programs that hold many files, or raise the limit"),
            (ENFILE, "Too many open files in system; close programs that hold many files, or raise the limit"),
            (
                ENOENT,
                "No such file or directory; it existed before: restore it if it was moved, and restart the daemon"
            ),
            (ESTALE, "Stale file handle; it existed before: restore it if it was moved, and restart the daemon"),
            (
                ELOOP,
                "Too many levels of symbolic links; a file of another kind is in its place: move it away"
            ),
            (EISDIR, "Is a directory; a file of another kind is in its place: move it away"),
            (ENOTDIR, "Not a directory; a file of another kind is in its place: move it away"),
        ] as [(Int32, String)])
    func `advice about a failed call`(code: Int32, words: String) {
        #expect(FileFailure(action: .write, path: "/s/a", code: code).sentence == "Cannot write /s/a: \(words).")
    }

    @Test func `change that a power failure may undo`() {
        #expect(
            FileFailure(action: .write, path: "/s/a", code: EIO, isInDoubt: true).sentence
                == "Cannot write /s/a: Input/output error (it is written, but may not survive a power cut); the disk "
                + "reports errors: look into the kernel's log and save your data.")
    }

    @Test func `protection by memory says why there is no vault on disk`() {
        let words = "nothing is written to disk; sessions end with the daemon"
        #expect(VaultProtection.memory(reason: nil).sentence == words)
        #expect(
            VaultProtection.memory(reason: .noKeyDirectory).sentence
                == words + ". No vault could be made: There is no directory for a key file.")
        #expect(VaultProtection.keyFile(directory: "/k").sentence.contains("/k "))
    }

    @Test func `refusal of a wrong passphrase`() {
        #expect(VaultError.wrongPassphrase.sentence == "The passphrase does not open the vault.")
    }
}
