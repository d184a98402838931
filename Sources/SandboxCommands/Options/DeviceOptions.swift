internal import ArgumentParser
internal import SandboxModel
internal import SystemIO

/// Which device a command works on.
struct DeviceOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The folder that the device lies in; else this user's own apps.", valueName: "dir"),
    completion: .directory)
  var root: ByteString?

  @Option(
    help: ArgumentHelp(
      "How the platform lays out its apps: coresimulator, flatpak, macos, snap or folder; found by looking.",
      valueName: "layout"),
    completion: .list(Layout.allCases.map(\.rawValue)))
  var layout: String?

  /// Finds the one device: at `--root`, or else this user's own.
  func find() throws -> Device {
    let choices = try choices()
    guard choices.count == 1 else {
      let layouts = choices.compactMap(\.layout).map { "'--layout \($0.rawValue)'" }
      throw UsageError(
        "you have \(choices.count) devices: it is not clear which is meant",
        hint: "choose by \(layouts.joined(separator: " or ")), or name one with '--root DIR'")
    }
    return try choices[0].find()
  }

  /// The device at `--root`, or else all of this user's own.
  func choices() throws -> [DeviceChoice] {
    let layout = try chosenLayout()
    if let root { return [DeviceChoice(root: root, layout: layout)] }
    return try OwnDevice.present(layout: layout)
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
}
