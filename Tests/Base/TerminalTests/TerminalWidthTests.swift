import Glibc
import Testing

@testable import Terminal

@Suite struct `The width of a terminal` {
    @Test func `is nobody's guess: what is no terminal has none`() {
        // The tests' own streams are whatever they are: a terminal tells, anything else does not.
        for stream in [Console.Stream.input, .output, .errors] where !stream.isTerminal {
            #expect(stream.columns == nil && stream.rows == nil)
        }
        #expect((Console.Stream.errors.columns ?? 1) > 0)
    }
}
