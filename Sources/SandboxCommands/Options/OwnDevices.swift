internal import Lifecycle
internal import SandboxModel
internal import SystemIO

/// The devices that a user has without naming any: the directories in which platforms keep the apps' data
/// of a user.
struct OwnDevice {
  /// Where it lies in the home directory.
  let place: ByteString
  let layout: Layout

  /// The places of all layouts that this program knows.
  static let all: [OwnDevice] = [
    (".var/app", "flatpak"), ("snap", "snap"), ("Library/Containers", "macos"),
  ].compactMap { place, name in
    Layout(rawValue: name).map { OwnDevice(place: ByteString(place), layout: $0) }
  }

  /// Those that exist, or the one of a layout.
  ///
  /// - Throws: `failed` when there is none, with what to do about it.
  static func present(layout: Layout?) throws -> [DeviceChoice] {
    guard let home = Host.environment("HOME") else {
      throw UsageError("there is no device to work on: HOME is not set", hint: hint)
    }
    let wanted = all.filter { layout == nil || $0.layout == layout }
    if wanted.isEmpty, let layout {
      throw UsageError(
        "there is no device to work on: no user has an own one of the layout '\(layout.rawValue)'",
        hint: hint)
    }
    let present = wanted.map { DeviceChoice(root: home.appending($0.place), layout: $0.layout) }
      .filter(\.isPresent)
    guard !present.isEmpty else {
      let places = wanted.map { "'\($0.place)'" }.joined(separator: ", ")
      throw LifecycleError(
        .failed, "there is no device to work on: '\(home)' has no \(places)", hint: hint)
    }
    return present
  }

  /// Those that exist, and a Mac user's simulators, to choose one by its name.
  ///
  /// - Throws: as `present(layout:)` where there is none at all.
  static func candidates(layout: Layout?) throws -> [DeviceCandidate] {
    var found: [DeviceCandidate] = []
    if layout == nil || layout == .coreSimulator, let home = Host.environment("HOME") {
      let finder = DeviceFinder(layout: .coreSimulator)
      found += (try? finder.candidates(in: home.appending(simulators))) ?? []
    }
    if layout == .coreSimulator, !found.isEmpty { return found }
    do {
      for choice in try present(layout: layout) {
        // One that cannot be read is not the one that is named.
        found += (try? DeviceFinder(layout: choice.layout).candidates(in: choice.root)) ?? []
      }
    } catch { if found.isEmpty { throw error } }
    return found
  }

  /// The directory in a home that holds the devices of Apple's simulator.
  private static let simulators: ByteString = "Library/Developer/CoreSimulator/Devices"

  private static let hint = """
    name one with '--root DIR', keep any directory with '--layout folder --root DIR', or make one to \
    try with 'sandboxctl sample DIR'
    """
}

/// A device that is meant, before it is looked at.
struct DeviceChoice {
  let root: ByteString
  /// Found by looking when it is not said.
  let layout: Layout?

  init(root: ByteString, layout: Layout?) { (self.root, self.layout) = (root, layout) }

  init(_ candidate: DeviceCandidate) {
    self.init(root: candidate.directory, layout: candidate.layout)
  }

  /// Looks at it. A directory that holds devices is none itself, and they are named.
  func find() throws -> Device {
    do throws(ModelError) {
      return try Device.find(root: root, layout: layout)
    } catch {
      let held = (try? DeviceFinder(layout: layout).candidates(in: root)) ?? []
      guard error.code == .noDevice, !held.isEmpty else { throw error }
      throw ModelError(
        .noDevice, error.attempt, on: error.subject, "it is none, but holds some",
        hint: "choose one with '--device NAME': \(held.listed)")
    }
  }

  /// Whether there is something: a directory that cannot be opened is there.
  fileprivate var isPresent: Bool {
    do throws(SystemError) {
      _ = try Directory.open(path: root)
      return true
    } catch { return !error.isMissing }
  }
}
