internal import ArgumentParser
internal import SandboxModel
internal import SystemIO

/// Which device a command works on.
struct DeviceOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The folder that the device lies in.", valueName: "dir"))
  var root: String?

  @Option(
    help: ArgumentHelp(
      "How the platform lays out its apps: coresimulator, flatpak, macos, snap or folder; found by looking.",
      valueName: "layout"))
  var layout: String?

  /// Finds the device: at `--root`, or else this user's own.
  func find() throws -> Device {
    if let root {
      return try Device.find(root: ByteString(root), layout: try chosenLayout())
    }
    guard let home = Host.environment("HOME") else {
      throw UsageError("there is no device to work on: HOME is not set", hint: Self.hint)
    }
    let own = home.appending(".var/app")
    guard (try? Folder.open(path: own)) != nil else {
      throw LifecycleFailure.noDevice(home, Self.hint)
    }
    return try Device.find(root: own, layout: try chosenLayout() ?? .flatpak)
  }

  /// The layout that is named, nil when none is.
  func chosenLayout() throws -> Layout? {
    guard let layout else { return nil }
    guard let known = Layout(rawValue: layout) else {
      let names = Layout.allCases.map(\.rawValue).joined(separator: ", ")
      throw UsageError("there is no layout '\(layout)'", hint: "choose one of \(names)")
    }
    return known
  }

  private static let hint = """
    name one with '--root DIR', keep any folder with '--layout folder --root DIR', or make one to \
    try with 'sandboxctl sample DIR'
    """
}
