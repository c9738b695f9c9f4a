import Terminal

/// Whether `ringbackd` can be started here. This program needs nothing of the system but its kernel; the daemon needs
/// OpenSSL 3 and the C library, and where they are missing or too old, the loader ends it before its first line.
extension DoctorReport {
    mutating func lookAtDaemonProgram() {
        let program = Programs.path("ringbackd")
        guard let answer = Tool.run([program, "--version"], withErrors: true), answer.status != 0 else { return }
        let said = answer.output.split(separator: "\n").last.map { String($0) } ?? "exit status \(answer.status)"
        switch said {
        case let said where said.contains("libcrypto.so.3"):
            add(
                "program", .wrong, "ringbackd cannot start: this system has no usable OpenSSL 3 (\(said)).",
                command: "sudo apt install libssl3")
        case let said where said.contains("GLIBC_"):
            add("program", .wrong, "ringbackd cannot start: it needs glibc 2.36 or newer (\(said)).")
        default: add("program", .wrong, "ringbackd cannot start: \(said).")
        }
    }
}
