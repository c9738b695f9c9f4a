public import BrokerCore
internal import Glibc
internal import KeptFiles
internal import OAuthSignIn
internal import RingbackBase
public import SessionVault
internal import SupabaseSignIn

/// A fact with a sentence for the user, which stands here or beside the fact's cases.
protocol Sentence {
    /// For the user: one sentence or more, or the end of one that begins with a field's name.
    var sentence: String { get }
}

extension Reason: Sentence {
    public var sentence: String {
        switch self {
        case .stated(let sentence): sentence
        case .flow(let reason): reason.sentence
        case .session(let reason): reason.sentence
        case .host(let host, let reason): "\(host) \(reason.sentence)."
        case .portUnusable(let failure):
            "The callback cannot arrive: \(failure?.clause ?? "the listener cannot be opened")."
        case .kind(let fact): (fact.reason as? any Sentence)?.sentence ?? ""
        case .both(let first, let second): "\(first.sentence) \(second.sentence)"
        case .vault(let error): error.sentence
        }
    }

    /// The same as the end of a sentence, with its full stop. The sentences of a further reason follow it.
    var asSentenceEnd: String {
        if case .both(let first, let second) = self { "\(first.sentence). \(second.sentence)" } else { "\(sentence)." }
    }
}

extension FileReason: Sentence {
    var sentence: String {
        switch self {
        case .folderOpenToOthers(let path, let failure):
            "\(path) is not kept: \(failure.path) \(failure.reason.sentence)."
        case .folderNotOpened(let path, let folder, let code):
            "\(path) is not kept: \(folder): \(text(ofError: code))."
        case .onDisk(let path):
            "\(path) is not kept: it would be on a disk, not in memory (tmpfs). Choose a path below "
                + "$XDG_RUNTIME_DIR, or allow it with on_disk = true."
        case .notRead(let path, let code): "\(path) cannot be read: \(text(ofError: code))."
        case .notWritten(let path, let code): "\(path) cannot be written: \(text(ofError: code))."
        case .notRemoved(let path, let code): "\(path) cannot be removed: \(text(ofError: code))."
        case .symbolicLink(let path): "\(path) is a symbolic link."
        case .notRegular(let path): "\(path) is not a regular file."
        case .ofOtherUser(let path): "\(path) belongs to another user."
        case .ofOtherProgram(let path): "\(path) was written by another program."
        case .left(let reason): "\(reason.sentence) It is neither overwritten nor removed."
        case .tooMuchScope(let name, let excess):
            "The provider of \(name) issued a token with more scope than the configuration names for the file "
                + "(\(excess.joined(separator: " ")))."
        case .tokenIsBound(let name):
            "The token of \(name) is bound to a key (DPoP): no program can use it from a file. If the provider issues "
                + "Bearer tokens too, set dpop = \"off\" for the account."
        case .tokenCharacters(let name): "The token of \(name) has characters that are not allowed in a token."
        case .typeCharacters(let name): "The type of \(name)'s token has characters that no type has."
        case .line(let cause): cause
        case .recordNotWritten(let error): "The record of the kept files cannot be written: \(error.sentence)"
        case .noIDToken(let name): "The session of \(name) has no valid ID token, and refreshes bring none."
        case .notRenewable(let name): "The token of \(name) cannot be renewed at present."
        }
    }
}

extension DirectoryTrust.Failure.Reason: Sentence {
    /// Goes on after the path, without a full stop.
    public var sentence: String {
        switch self {
        case .danglingLink: "is a link whose target does not exist. Remove it"
        case .foreignOwner(let uid):
            "belongs to uid \(uid), neither you (uid \(geteuid())) nor root, who could replace what is in it"
        case .writableByOthers: "can be written by others, who could replace what is in it"
        }
    }
}

func text(ofError code: Int32) -> String { unsafe String(cString: strerror(code)) }

extension ListenerFailure {
    /// Why there is no listener, as a part of a sentence.
    var clause: String {
        switch cause {
        case .portTaken(let holder):
            let who = holder.map { $0 == getuid() ? " by a program of yours" : " by uid \($0)" } ?? ""
            return port.map { "port \($0) is in use\(who)" } ?? "no port is free"
        case .system(let call, EACCES): return "the port may not be used by this user (\(call)); configure another one"
        case .system(let call, let code): return "\(unsafe String(cString: strerror(code))) (\(call))"
        case .unsuitable(let reason):
            let sentence = reason.sentence
            return sentence.hasSuffix(".") ? String(sentence.dropLast()) : sentence
        }
    }

    var members: JSONObject { ["host": host, "port": port, "setting": setting] }
}

extension OAuthReason: Sentence {}

extension SupabaseReason: Sentence {}

/// How a user is named who has neither an address nor a subject.
let unnamedUser = "an unnamed user"

extension SessionReason: Sentence {
    var sentence: String {
        switch self {
        case .otherUser(let name, let held, let other):
            "\(name) is signed in as \(held ?? unnamedUser), and this sign-in is by \(other ?? unnamedUser). "
                + "Nothing was changed. "
                + "Sign out first, or ask to switch."
        case .noRoom(let cause):
            "The session was not refreshed, since a new refresh token could not be kept safe: \(cause.sentence)"
        case .heldElsewhere(let name, let wait):
            "Another host that shares the vault refreshes the session of \(name), or may have done so. "
                + "It is looked at again in \(wait.components.seconds) seconds at the latest."
        case .endUncertain(let name):
            "The provider refused the refresh tokens of \(name), but another host may have received a newer one. "
                + "It is asked again later. If no other host is left, sign in again."
        case .notRefreshable(let name, let advice):
            "The provider gave \(name) no refresh token. Sign in again when the session ends."
                + SessionReason.suffix(advice)
        case .notDownscopable(let name, let advice):
            "The provider gave \(name) no refresh token, so a downscoped token cannot be requested."
                + SessionReason.suffix(advice)
        case .endsWithToken(let name, let advice):
            "The provider gave \(name) no refresh token: the session ends with its access token. "
                + (advice?.sentence ?? "When it ends, sign in again.")
        case .lostScopes(let name, let scopes):
            "The session of \(name) lost scopes when a token with fewer scopes was requested: "
                + "\(scopes.joined(separator: " ")). Sign in again to get them back. Ringback does not "
                + "request such tokens of this provider any more."
        case .losesScopes(let name):
            "The provider of \(name) takes scopes away from the session when a token with fewer scopes is requested. "
                + "Ringback does not request one again: use a token without a scope."
        case .mayLoseScopes(let name, let exchange):
            "It is not known whether the session of \(name) keeps its scopes at the provider when a token with fewer "
                + "scopes is requested. A restricted socket does not risk them. "
                + (exchange.map { "The provider refused to exchange a token instead (\($0)). " } ?? "")
                + "Request a token with fewer scopes once without the restricted socket: its result is remembered."
        }
    }

    private static func suffix(_ advice: Reason?) -> String { advice.map { " \($0.sentence)" } ?? "" }
}

extension FlowReason: Sentence {
    var sentence: String {
        switch self {
        case .tooManyPending(let most): "\(most) sign-ins are pending already. Finish or cancel one of them."
        case .anotherPending(let name, let method, let age):
            "Another sign-in of \(name) is pending: method \(method), \(age) \(age == 1 ? "second" : "seconds") old."
        case .configurationChanged(let name): "The configuration of \(name) changed during the sign-in."
        case .noProofAwaited(let kind): "This sign-in waits for no \(kind == .credential ? "passkey" : "code")."
        case .otherResponseAwaited: "This sign-in waits for another kind of response."
        case .otherAddress: "It arrived at another address than the one this sign-in asked for."
        case .anotherCallback: "Another callback of this sign-in is being worked on."
        case .notURL: "It is not a URL."
        case .malformedCallback: "The callback is not a well-formed authorization response."
        case .repeatedParameter(let name): "The callback has the parameter \(name) more than once."
        case .codeAndError: "The callback has both a code and an error."
        case .neitherCodeNorError: "The callback has neither a code nor an error."
        case .carriesTokens:
            "The callback carries tokens (implicit flow), which is not accepted, because they were exposed. "
                + "Configure the provider for the authorization code flow with PKCE."
        case .withoutState: "The callback has no state, so it belongs to no sign-in."
        case .inFragment:
            "The response is in the URL's fragment. Configure the provider to send it in the query (response_mode=query)."
        case .posted: "The response came by POST. That is accepted only with response_mode = \"form_post\"."
        case .notNavigated: "The response did not come by a page load of the browser."
        case .unknownState: "No pending sign-in has this state. It may have been finished or cancelled."
        }
    }
}
