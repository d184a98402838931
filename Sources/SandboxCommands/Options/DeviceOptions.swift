internal import ArgumentParser
internal import DeviceDiscovery
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
      "The platform's layout: coresimulator, flatpak, macos, snap, android, systemd, xdg or "
        + "folder (default: detect it).",
      valueName: "layout"),
    completion: .list(Layout.allCases.map(\.rawValue)))
  var layout: String?

  /// Whether the command line names a device.
  var isNamed: Bool { root != nil || name != nil }

  /// Returns the device at `--root`, or the user's own if there is only one, or only one whose
  /// directory contains all of the given paths.
  func find(for paths: [ByteString] = []) throws -> Device {
    var choices = try choices()
    if choices.count > 1, !paths.isEmpty {
      let around = choices.filter { paths.allSatisfy($0.contains) }
      if around.count == 1 { choices = around }
    }
    guard choices.count == 1 else {
      let layouts = choices.compactMap(\.layout).map { "'--layout \($0.rawValue)'" }
      throw UsageError(
        .deviceRequired, "you have \(choices.count) devices, and none is selected",
        hint: "select one with \(layouts.joined(separator: " or ")), '--device NAME' or "
          + "'--root DIR'")
    }
    return try choices[0].find()
  }

  /// Returns the device at `--root`, or all of the user's own; with `--device`, the one of that
  /// name among these, or among those in `--root`.
  func choices() throws -> [Choice] {
    let layout = try chosenLayout()
    if let name { return [Choice(try candidates(layout).device(name))] }
    if let root { return [Choice(root: root, layout: layout)] }
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
      throw UsageError(
        .unknownLayout, "there is no layout '\(layout)'", hint: "choose one of \(names)")
    }
    return known
  }
}

extension DeviceOptions {
  /// The default devices of a user: the directories in which platforms keep the data of the user's
  /// apps.
  private struct OwnDevice {
    /// The path in the home directory.
    let directory: ByteString
    let layout: Layout

    /// The default devices of all layouts.
    static let all: [OwnDevice] = [
      (".var/app", "flatpak"), ("snap", "snap"), ("Library/Containers", "macos"),
    ].compactMap { directory, name in
      Layout(rawValue: name).map { OwnDevice(directory: ByteString(directory), layout: $0) }
    }

    /// The layouts whose default device is used only if the layout is named, with its path in the
    /// home directory, or absolute: every home directory and every system would have one.
    private static let onlyIfNamed: [Layout: ByteString] = [.xdg: "", .systemd: "/"]

    /// Returns the default devices that exist, or the one of a layout.
    ///
    /// - Throws: `failed` if there is none, with a hint.
    static func present(layout: Layout?) throws -> [Choice] {
      guard let home = Host.environment("HOME") else {
        throw UsageError(.environmentMissing, "no device found: HOME is not set", hint: hint)
      }
      if let layout, let root = onlyIfNamed[layout] {
        return [Choice(root: root.isAbsolute ? root : home.appending(root), layout: layout)]
      }
      let wanted = all.filter { layout == nil || $0.layout == layout }
      if wanted.isEmpty, let layout {
        throw UsageError(
          .deviceRequired, "no device found: the layout '\(layout.rawValue)' has no default device",
          hint: hint)
      }
      let present = wanted.map { Choice(root: home.appending($0.directory), layout: $0.layout) }
        .filter(\.isPresent)
      guard !present.isEmpty else {
        let names = wanted.map { "'\($0.directory)'" }
        let directories = [names.dropLast().joined(separator: ", "), names.last ?? ""]
          .filter { !$0.isEmpty }.joined(separator: " or ")
        throw OperationError(
          .failed, code: .noDevice, "no device found: '\(home)' has no \(directories)", hint: hint)
      }
      return present
    }

    /// Returns the default devices that exist and, on a Mac, the simulators, for the selection of
    /// one by name.
    ///
    /// - Throws: the error of `present(layout:)` if there is none.
    static func candidates(layout: Layout?) throws -> [DeviceCandidate] {
      var found: [DeviceCandidate] = []
      if layout == nil || layout == .coreSimulator, let home = Host.environment("HOME") {
        let finder = DeviceFinder(layout: .coreSimulator)
        found += (try? finder.candidates(in: home.appending(simulators))) ?? []
      }
      if layout == .coreSimulator, !found.isEmpty { return found }
      do {
        for choice in try present(layout: layout) {
          // An unreadable device cannot be the named one.
          found += (try? DeviceFinder(layout: choice.layout).candidates(in: choice.root)) ?? []
        }
      } catch { if found.isEmpty { throw error } }
      return found
    }

    /// The directory in a home that holds the devices of Apple's simulator.
    private static let simulators: ByteString = "Library/Developer/CoreSimulator/Devices"

    private static let hint = """
      name one with '--root DIR', use '--layout xdg' for the data of the other programs in your home \
      directory or '--layout folder --root DIR' for any directory, or create a sample with \
      'sandboxctl sample DIR'
      """
  }

  /// A selected device, before it is opened.
  struct Choice {
    let root: ByteString
    /// The layout; nil to detect it.
    let layout: Layout?

    init(root: ByteString, layout: Layout?) { (self.root, self.layout) = (root, layout) }

    init(_ candidate: DeviceCandidate) {
      self.init(root: candidate.directory, layout: candidate.layout)
    }

    /// Whether a path of the host, which need not exist, is in the directory. A relative one that
    /// does not exist is a logical path.
    fileprivate func contains(_ path: ByteString) -> Bool {
      guard path.isAbsolute || path.beginsWithDots || (try? Host.realPath(path)) != nil,
        let absolute = path.absolute
      else { return false }
      return absolute.isWithin(root) || Host.resolved(absolute).isWithin(Host.resolved(root))
    }

    /// Opens the device. The error for a directory that contains devices lists them.
    func find() throws -> Device {
      do throws(ModelError) {
        return try Device.find(root: root, layout: layout)
      } catch {
        let held = (try? DeviceFinder(layout: layout).candidates(in: root)) ?? []
        guard error.code == .noDevice, !held.isEmpty else { throw error }
        throw ModelError(
          .noDevice, error.action, on: error.subject,
          reason: "it is not a device, but contains devices",
          hint: "select one with '--device NAME': \(held.listed)")
      }
    }

    /// Whether the directory exists, even if it cannot be opened.
    fileprivate var isPresent: Bool {
      do throws(SystemError) {
        _ = try Directory.open(path: root)
        return true
      } catch { return !error.isMissing }
    }
  }
}
