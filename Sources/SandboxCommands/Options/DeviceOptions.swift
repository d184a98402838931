internal import ArgumentParser
internal import SandboxModel
internal import SystemIO

/// Which device a command works on.
struct DeviceOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The directory that the device lies in; else this user's own apps.", valueName: "dir"),
    completion: .directory)
  var root: ByteString?

  @Option(
    name: .customLong("device"),
    help: ArgumentHelp(
      "The device of this name, UDID or identity, of those in the directory; else of this user's own.",
      valueName: "name"))
  var name: ByteString?

  @Option(
    help: ArgumentHelp(
      "How the platform lays out its apps: coresimulator, flatpak, macos, snap or directory; found by looking.",
      valueName: "layout"),
    completion: .list(Layout.allCases.map(\.rawValue)))
  var layout: String?

  /// Whether a device is named, and not only the one that is there by default.
  var isNamed: Bool { root != nil || name != nil }

  /// Finds the one device: at `--root`, or else this user's own.
  func find() throws -> Device {
    let choices = try choices()
    guard choices.count == 1 else {
      let layouts = choices.compactMap(\.layout).map { "'--layout \($0.rawValue)'" }
      throw UsageError(
        "you have \(choices.count) devices: it is not clear which is meant",
        hint: "choose by \(layouts.joined(separator: " or ")), or name one with '--device NAME' or "
          + "'--root DIR'")
    }
    return try choices[0].find()
  }

  /// The device at `--root`, or else all of this user's own; of these, or of several in `--root`, the
  /// one that `--device` names.
  func choices() throws -> [DeviceChoice] {
    let layout = try chosenLayout()
    if let name { return [DeviceChoice(try candidates(layout).device(name))] }
    if let root { return [DeviceChoice(root: root, layout: layout)] }
    return try OwnDevice.present(layout: layout)
  }

  private func candidates(_ layout: Layout?) throws -> [DeviceCandidate] {
    if let root { return try DeviceFinder(layout: layout).candidates(in: root) }
    return try OwnDevice.candidates(layout: layout)
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
