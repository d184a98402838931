internal import ArchiveStore
internal import SandboxModel
internal import SystemIO

/// The commands that reinstall apps whose data is restored to a device without them.
package enum FlatpakInstalls {
  /// Returns commands for the apps that are installed in the snapshot and missing on the device:
  /// first those that add remotes, then one to install each app.
  static func commands(
    for apps: [ByteString], _ snapshot: Snapshot, _ device: Device
  ) -> [String] {
    let installed = Set(device.apps.filter(\.isInstalled).map(\.identifier.bytes))
    var remotes: [String] = []
    var installs: [String] = []
    for app in snapshot.apps {
      let identifier = ByteString(app.identifier)
      guard let flatpak = app.flatpak, apps.contains(identifier), !installed.contains(identifier)
      else { continue }
      let scope = flatpak.scope == "system" ? "--system" : "--user"
      if let origin = flatpak.origin, let url = flatpak.url {
        let line =
          "flatpak remote-add --if-not-exists \(scope) \(quoted(origin)) \(quoted(url))"
        if !remotes.contains(line) { remotes.append(line) }
      }
      let origin = flatpak.origin.map { quoted($0) + " " } ?? ""
      let reference = "\(app.identifier)/\(flatpak.architecture)/\(flatpak.branch)"
      installs.append("flatpak install \(scope) \(origin)\(quoted(reference))")
    }
    return remotes + installs
  }

  /// Returns a word for a shell, quoted unless it has only safe characters.
  package static func quoted(_ word: String) -> String {
    let harmless = word.utf8.allSatisfy { byte in
      (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
        || "-_./:@%+=,".utf8.contains(byte)
    }
    if harmless, !word.isEmpty { return word }
    return "'"
      + word.split(separator: "'", omittingEmptySubsequences: false).joined(
        separator: "'\\''") + "'"
  }
}
