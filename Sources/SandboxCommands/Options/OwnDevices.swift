internal import Lifecycle
internal import SandboxModel
internal import SystemIO

/// The default devices of a user: the directories in which platforms keep the data of the user's
/// apps.
struct OwnDevice {
  /// The path in the home directory.
  let place: ByteString
  let layout: Layout

  /// The default devices of all layouts.
  static let all: [OwnDevice] = [
    (".var/app", "flatpak"), ("snap", "snap"), ("Library/Containers", "macos"),
  ].compactMap { place, name in
    Layout(rawValue: name).map { OwnDevice(place: ByteString(place), layout: $0) }
  }

  /// Returns the default devices that exist, or the one of a layout.
  ///
  /// - Throws: `failed` if there is none, with a hint.
  static func present(layout: Layout?) throws -> [DeviceChoice] {
    guard let home = Host.environment("HOME") else {
      throw UsageError("no device found: HOME is not set", hint: hint)
    }
    let wanted = all.filter { layout == nil || $0.layout == layout }
    if wanted.isEmpty, let layout {
      throw UsageError(
        "no device found: the layout '\(layout.rawValue)' has no default device",
        hint: hint)
    }
    let present = wanted.map { DeviceChoice(root: home.appending($0.place), layout: $0.layout) }
      .filter(\.isPresent)
    guard !present.isEmpty else {
      let places = wanted.map { "'\($0.place)'" }.joined(separator: ", ")
      throw LifecycleError(
        .failed, "no device found: '\(home)' has no \(places)", hint: hint)
    }
    return present
  }

  /// Returns the default devices that exist and, on a Mac, the simulators, for the selection of one
  /// by name.
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
    name one with '--root DIR', use any directory with '--layout folder --root DIR', or create a \
    sample with 'sandboxctl sample DIR'
    """
}

/// A selected device, before it is opened.
struct DeviceChoice {
  let root: ByteString
  /// The layout; nil to detect it.
  let layout: Layout?

  init(root: ByteString, layout: Layout?) { (self.root, self.layout) = (root, layout) }

  init(_ candidate: DeviceCandidate) {
    self.init(root: candidate.directory, layout: candidate.layout)
  }

  /// Opens the device. The error for a directory that contains devices lists them.
  func find() throws -> Device {
    do throws(ModelError) {
      return try Device.find(root: root, layout: layout)
    } catch {
      let held = (try? DeviceFinder(layout: layout).candidates(in: root)) ?? []
      guard error.code == .noDevice, !held.isEmpty else { throw error }
      throw ModelError(
        .noDevice, error.attempt, on: error.subject,
        reason: "it is not a device, but contains some",
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
