import RingbackBase
import Testing

@testable import Sandbox

@Suite(.timeLimit(.minutes(5))) struct `The Supabase project answers as the real server was seen to` {
    @Test(arguments: SupabaseVector.names) func `in every case that was observed`(name: String) async throws {
        var replay = SupabaseReplay(try SupabaseVector(named: name))
        try await replay.run()
    }

    @Test func `and every case says which rule it is about`() throws {
        #expect(SupabaseVector.names.count > 60)
        for name in SupabaseVector.names {
            let vector = try SupabaseVector(named: name)
            #expect(vector.document["rule"]?.string?.hasSuffix(".") == true, "\(name)")
            let names = vector.document.object?.names ?? []
            #expect(names.allSatisfy { ["rule", "configuration", "steps"].contains($0) }, "\(name)")
        }
    }
}
