internal import ArgumentParser
internal import SandboxModel
internal import SystemIO

/// The device that a command works on.
struct DeviceOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The directory of the device (default: the user's own apps).", valueName: "dir"),
    completion: .directory)
  var root: ByteString?

  @Option(
    name: .customLong("device"),
    help: ArgumentHelp(
      "The device of this name, UDID or identity, among those in the root directory or "
        + "the user's own.",
      valueName: "name"))
  var name: ByteString?

  @Option(
    help: ArgumentHelp(
      "The platform's layout: coresimulator, flatpak, macos, snap or folder (default: "
        + "detect it).",
      valueName: "layout"),
    completion: .list(Layout.allCases.map(\.rawValue)))
  var layout: String?

  /// Whether the command line names a device.
  var isNamed: Bool { root != nil || name != nil }

  /// Returns the device at `--root`, or the user's own if there is only one.
  func find() throws -> Device {
    let choices = try choices()
    guard choices.count == 1 else {
      let layouts = choices.compactMap(\.layout).map { "'--layout \($0.rawValue)'" }
      throw UsageError(
        "you have \(choices.count) devices, and none is selected",
        hint: "select one with \(layouts.joined(separator: " or ")), '--device NAME' or "
          + "'--root DIR'")
    }
    return try choices[0].find()
  }

  /// Returns the device at `--root`, or all of the user's own; with `--device`, the one of that
  /// name among these, or among those in `--root`.
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

  /// Returns the named layout, or nil.
  func chosenLayout() throws -> Layout? {
    guard let layout else { return nil }
    guard let known = Layout(rawValue: layout) else {
      let names = Layout.allCases.map(\.rawValue).joined(separator: ", ")
      throw UsageError("there is no layout '\(layout)'", hint: "choose one of \(names)")
    }
    return known
  }
}
