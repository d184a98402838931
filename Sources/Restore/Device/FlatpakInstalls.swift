internal import ArchiveStore
internal import SandboxModel
internal import SystemIO

/// The commands that reinstall apps whose data is restored to a device without them.
///
/// Users paste these commands into a shell, and their words come from the snapshot: an app whose
/// record has misleading words gets a remark instead of a command.
struct FlatpakInstalls {
  /// The commands: first those that add remotes, then one to install each app.
  var commands: [String] { remotes + installs }
  /// The apps without a command, by their logical paths.
  private(set) var remarks: [PathRemark] = []
  private var remotes: [String] = []
  private var installs: [String] = []

  /// Collects the commands for the apps that are installed in the snapshot and missing on the
  /// device.
  init(for apps: [ByteString], _ snapshot: Snapshot, _ device: Device) {
    let installed = Set(device.apps.filter(\.isInstalled).map(\.identifier.bytes))
    for app in snapshot.apps {
      let identifier = ByteString(app.identifier)
      guard let flatpak = app.flatpak, apps.contains(identifier), !installed.contains(identifier)
      else { continue }
      add(identifier, flatpak)
    }
  }

  private mutating func add(_ app: ByteString, _ flatpak: AppRecord.Flatpak) {
    let (origin, url) = (flatpak.origin.map { ByteString($0) }, flatpak.url.map { ByteString($0) })
    let (architecture, branch) = (ByteString(flatpak.architecture), ByteString(flatpak.branch))
    let words = [app, architecture, branch] + [origin, url].compactMap(\.self)
    guard words.allSatisfy(ShellWord.isPlainArgument) else {
      remarks.append(
        PathRemark(
          path: ByteString("apps").appending(app),
          remark: "no command to install it is shown: its record in the snapshot has a name that "
            + "is empty, begins with '-' or contains unprintable characters"))
      return
    }
    let scope = flatpak.scope == "system" ? "--system" : "--user"
    if let origin, let url {
      let line =
        "flatpak remote-add --if-not-exists \(scope) \(ShellWord.text(origin)) "
        + ShellWord.text(url)
      if !remotes.contains(line) { remotes.append(line) }
    }
    let remote = origin.map { ShellWord.text($0) + " " } ?? ""
    let reference = app.appending(architecture).appending(branch)
    installs.append("flatpak install \(scope) \(remote)\(ShellWord.text(reference))")
  }
}
