// `fuzz TARGET [libFuzzer's options] CORPUS...`: one program for all targets, since only the code that an input reaches
// counts as covered. A broken law ends the program as a crash does, and libFuzzer keeps the input.

import CFuzzer
import FuzzLaws
import Glibc

/// The target named on the command line; set once, before the first input.
nonisolated(unsafe) private var chosen: FuzzTarget?

@main struct Fuzz {
    static func main() {
        var arguments = CommandLine.arguments
        if arguments.count > 1, target(named: arguments[1]) != nil {
            // libFuzzer starts this program anew where it merges, with the arguments that it was given.
            unsafe setenv(variable, arguments.remove(at: 1), 1)
        }
        guard let name = unsafe getenv(variable), let target = target(named: unsafe String(cString: name)) else {
            let names = FuzzTarget.all.map(\.name).joined(separator: " ")
            say("usage: fuzz TARGET [OPTIONS] [CORPUS...]\ntargets: \(names)")
            exit(64)
        }
        unsafe chosen = target
        var count = Int32(arguments.count)
        let copies: [UnsafeMutablePointer<CChar>?] = unsafe arguments.map { unsafe strdup($0) } + [nil]
        let list = unsafe UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(capacity: copies.count)
        unsafe list.initialize(from: copies, count: copies.count)
        var place: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = unsafe list
        let status = unsafe LLVMFuzzerRunDriver(&count, &place) { unsafe Fuzz.run($0, $1) }
        exit(status)
    }

    private static let variable = "RINGBACK_FUZZ_TARGET"

    private static func target(named name: String) -> FuzzTarget? { FuzzTarget.all.first { $0.name == name } }

    private static func say(_ text: String) {
        let line = Array("\(text)\n".utf8)
        _ = unsafe write(STDERR_FILENO, line, line.count)
    }

    private static func run(_ data: UnsafePointer<UInt8>?, _ size: Int) -> Int32 {
        let bytes = unsafe Array(UnsafeBufferPointer(start: data, count: size))
        do {
            try unsafe chosen?.check(bytes)
            return 0
        } catch {
            say("\(error)")
            abort()
        }
    }
}
