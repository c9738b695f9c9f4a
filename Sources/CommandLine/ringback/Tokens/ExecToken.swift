import CLinux
import Glibc
import RingbackClient

/// Where a command finds its token: on a descriptor, or in a variable that the user named. Never in its arguments, and
/// never in a file with a name.
struct ExecToken {
    /// Names the descriptor's number, never the token.
    static let descriptorVariable = "RINGBACK_TOKEN_FD"

    var variable: String?
    /// The number that was asked for.
    var descriptor: Int32?

    static func isVariable(_ name: String) -> Bool {
        let isLetter: (UInt8) -> Bool = { byte in
            switch byte {
            case 0x41...0x5A, 0x61...0x7A, 0x5F: true
            default: false
            }
        }
        guard let first = name.utf8.first, isLetter(first) else { return false }
        return name.utf8.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) }
    }

    /// Puts the token where the program that replaces this one finds it. To be called right before that.
    func put(_ token: String) throws(RingbackError) {
        // The variable that an outer `ringback exec` set is not for this command.
        unsafe unsetenv(ExecToken.descriptorVariable)
        if let variable {
            guard unsafe setenv(variable, token, 1) == 0 else { throw ExecToken.failure("the variable \(variable)") }
            if descriptor == nil { return }
        }
        let number = try open(token)
        guard unsafe setenv(ExecToken.descriptorVariable, "\(number)", 1) == 0 else {
            throw ExecToken.failure("the variable \(ExecToken.descriptorVariable)")
        }
    }

    /// A descriptor that stays open when the program is replaced. Everything else that is open here is closed then.
    private func open(_ token: String) throws(RingbackError) -> Int32 {
        let bytes = Array(token.utf8)
        let file = unsafe clinux_memory_file(bytes, bytes.count)
        guard file >= 0 else { throw ExecToken.failure("a file in memory", -file) }
        let number = descriptor.map { dup2(file, $0) } ?? fcntl(file, F_DUPFD, 3)
        guard number >= 0 else { throw ExecToken.failure("descriptor \(descriptor ?? 3)") }
        if number == file {
            // The number that was asked for is the file's own: dup2 would leave close-on-exec set.
            guard fcntl(file, F_SETFD, 0) == 0 else { throw ExecToken.failure("descriptor \(number)") }
        } else {
            close(file)
        }
        return number
    }

    private static func failure(_ what: String, _ code: Int32 = errno) -> RingbackError {
        let reason = unsafe String(cString: strerror(code))
        return RingbackError(.systemError, "The token cannot be passed to the command (\(what)): \(reason).")
    }
}

/// Replaces this program by another.
enum Replacement {
    /// Returns only if the program cannot be started, with the exit status that shells use for that.
    static func run(_ arguments: [String]) -> CommandFailure {
        var vector = unsafe arguments.map { unsafe strdup($0) } + [nil]
        let program = arguments.first ?? ""
        unsafe execvp(program, &vector)
        let code = errno
        unsafe vector.forEach { unsafe free($0) }
        return CommandFailure(program: program, code: code)
    }
}
