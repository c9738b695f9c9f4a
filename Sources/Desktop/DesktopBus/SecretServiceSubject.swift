/// Detects that the Secret Service starts, stops, locks or unlocks. Reporting too often does no harm, because the
/// receiver checks again.
struct SecretServiceSubject: BusSubject {
    let isDueAtOnce = true

    init(_ bus: BusConnection) throws(BusFailure) {
        let sender = "type='signal',sender='\(SecretServiceClient.name)',"
        try bus.addMatch(
            "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
                + "arg0='\(SecretServiceClient.name)'")
        // Services report a lock in one of these two ways, some in both.
        try bus.addMatch(sender + "interface='org.freedesktop.Secret.Service'")
        try bus.addMatch(
            sender + "interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',"
                + "arg0='org.freedesktop.Secret.Collection'")
    }

    func concerns(_ message: BusMessage) throws(BusFailure) -> Bool {
        for member in ["CollectionChanged", "CollectionCreated", "CollectionDeleted"]
        where message.isSignal(member, of: "org.freedesktop.Secret.Service") {
            return true
        }
        if message.isSignal("PropertiesChanged", of: "org.freedesktop.DBus.Properties") { return true }
        guard message.isSignal("NameOwnerChanged", of: "org.freedesktop.DBus") else { return false }
        return try message.readText() == SecretServiceClient.name
    }
}
