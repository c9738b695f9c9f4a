// The cases below Tests/Vectors that a generator writes: whoever mends one by hand, or changes the generator and writes
// nothing, hears of it.

import Testing

@Suite struct `The generator of vectors` {
    @Test func `writes every case that is its own, byte for byte as it is kept`() async throws {
        let generator = "\(Document.root)/Tests/Vectors/generator"
        let program = try Program(
            "/usr/bin/env", ["python3", "-B", generator, "--check"],
            environment: ["PATH": Programs.variable("PATH") ?? ""])
        // Keys and signatures in plain Python: some twelve seconds of work.
        try await program.end(within: Bound.seconds(180)).expect(0, prints: " files are written, 0 are different")
    }
}
