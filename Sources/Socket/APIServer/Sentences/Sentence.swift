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
    /// For the user: one sentence or more, or the end of one that begins with a field's name.
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

/// The system's text for an `errno`.
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

    /// The members of a problem document.
    var members: JSONObject {
        var members = JSONObject()
        members["host"] = host.map { .string($0) }
        members["port"] = port.map { .integer($0) }
        members["setting"] = setting.map { .string($0) }
        return members
    }
}

extension OAuthReason: Sentence {}

extension SupabaseReason: Sentence {}
