import Adapters
import RingbackBase

/// docker's `config.json` with an entry added and removed. The first line is the registry, the rest the file.
enum DockerConfigurationLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (registry, text) = bytes.headLineAndRest
        guard var configuration = try? DockerConfiguration(reading: text) else { return }
        let document = try JSON(parsing: text)
        let former = configuration.helpers.map(\.registry)
        try hold(
            "the registries are the members of credHelpers", former == document["credHelpers"]?.object?.names ?? [])
        let isNew = !former.contains(registry)
        configuration.add(registry)
        guard isNew else { return try hold("a known registry stays as it is", configuration.bytes == text) }
        var expected = document.object ?? JSONObject()
        var helpers = expected["credHelpers"]?.object ?? JSONObject()
        helpers[registry] = "ringback"
        expected["credHelpers"] = .object(helpers)
        // The entry may be one value more than is read.
        try hold(
            "only the entry is added", try JSON(parsing: configuration.bytes, maxValues: 30_000) == .object(expected))
        configuration.remove(registry)
        if former.isEmpty { expected["credHelpers"] = nil } else { expected["credHelpers"] = document["credHelpers"] }
        try hold("only the entry is removed", try JSON(parsing: configuration.bytes) == .object(expected))
    }
}
