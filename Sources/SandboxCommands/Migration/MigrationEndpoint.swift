internal import ArchiveStore
internal import DeviceDiscovery
internal import Migration
internal import SandboxModel
internal import SystemIO

/// A side of a migration as specified on the command line: `[LAYOUT:]ROOT`, or a snapshot.
enum MigrationEndpoint {
  /// The apps of one form in a home directory.
  case home(AppPairing.Side)
  /// A device of another layout.
  case device(root: ByteString, layout: Layout)
  /// A snapshot.
  case snapshot(ByteString)
  /// All apps of a home directory, each form separately.
  case machine(home: ByteString)

  /// Parses the value of `--from`. A word that does not name a directory is a snapshot.
  ///
  /// - Parameter isWhole: Whether a home directory without a layout stands for all forms of its
  ///   apps.
  init(source word: ByteString, isWhole: Bool = false) throws {
    let (layout, root) = try Self.parts(word)
    if layout == nil, !root.isAbsolute, (try? Host.realPath(root)) == nil {
      try Self.requireSnapshot(word)
      self = .snapshot(word)
    } else {
      self = try Self.directory(root, layout, isWhole: isWhole)
    }
  }

  private static func requireSnapshot(_ word: ByteString) throws {
    do {
      _ = try SnapshotPath(word)
    } catch let error as UsageError {
      throw UsageError(
        error.code, "'\(word)' names neither a directory nor a snapshot",
        hint: "a directory is written as [LAYOUT:]ROOT, with a layout such as host, deb, flatpak, "
          + "snap, ios or macos" + (error.hint.map { "; for a snapshot, \($0)" } ?? ""))
    }
  }

  /// Parses the value of `--to`. A directory that does not exist yet can be an `.xcappdata`.
  init(target word: ByteString, isWhole: Bool = false) throws {
    let (layout, root) = try Self.parts(word)
    if layout == nil, NewAppDataBundle.isNamed(root) {
      self = .device(root: root, layout: .coreSimulator)
    } else {
      self = try Self.directory(root, layout, isWhole: isWhole)
    }
  }

  /// Whether a value has a layout before a colon.
  static func hasLayout(_ word: ByteString) throws -> Bool { try parts(word).word != nil }

  /// The word before the colon: a form of apps, or a layout.
  private enum Word {
    case packaging(Packaging)
    case layout(Layout)

    init?(_ text: String) {
      if let packaging = Packaging(rawValue: text), packaging != .macOS {
        self = .packaging(packaging)
      } else if text == Layout.xdg.rawValue {
        self = .packaging(.host)
      } else if ["ios", "simulator", "xcappdata"].contains(text) {
        // The platforms and the bundle with this layout.
        self = .layout(.coreSimulator)
      } else if let layout = Layout(rawValue: text) {
        self = .layout(layout)
      } else {
        return nil
      }
    }
  }

  /// Splits a value at the colon after a known word.
  private static func parts(_ word: ByteString) throws -> (word: Word?, root: ByteString) {
    let colon = UInt8(ascii: ":")
    guard let end = word.bytes.firstIndex(of: colon),
      let text = ByteString(word.bytes[..<end]).utf8, let known = Word(text)
    else { return (nil, word) }
    let root = ByteString(word.bytes[(end + 1)...])
    guard !root.isEmpty else {
      throw UsageError(
        .invalidValue, "'\(word)' names no directory",
        hint: "write it as '\(text):DIR', for example '\(text):/home/me'")
    }
    return (known, root)
  }

  private static func directory(
    _ root: ByteString, _ word: Word?, isWhole: Bool
  ) throws -> MigrationEndpoint {
    switch word {
    case .packaging(let packaging): return try side(packaging, root)
    case .layout(.folder): throw plain(root)
    case .layout(let layout): return .device(root: root, layout: layout)
    case nil:
      if isWhole, let home = try wholeHome(root) { return .machine(home: home) }
      return try detected(root)
    }
  }

  /// Returns the real path of a directory that is a home with apps outside iOS and macOS, or is
  /// empty, or nil for others: the directory of one form's apps, and devices.
  private static func wholeHome(_ root: ByteString) throws -> ByteString? {
    let real: ByteString
    do throws(SystemError) {
      real = try Host.realPath(root)
    } catch { throw OperationError(error) }
    let forms: [Packaging] = [.flatpak, .snap]
    let isInner = forms.contains { packaging in
      let inner = packaging.deviceDirectory?.components ?? []
      return Array(real.components.suffix(inner.count)) == inner
    }
    if isInner { return nil }
    guard let found = try? Device.find(root: real).layout else { return real }
    return [.flatpak, .snap, .xdg].contains(found) ? real : nil
  }

  /// The home directory of a macOS user as one side of a migration by its apps' own lists, or nil
  /// for other directories.
  var desktop: AppPairing.Side? {
    guard case .device(let root, .macOS) = self, let real = try? Host.realPath(root) else {
      return nil
    }
    let inner: [ByteString] = ["Library", "Containers"]
    let parts = real.components
    let isInner = parts.suffix(inner.count) == inner[...]
    let home = ByteString(joining: parts.dropLast(isInner ? inner.count : 0), isAbsolute: true)
    return AppPairing.Side(.macOS, home: home)
  }

  private static func detected(_ root: ByteString) throws -> MigrationEndpoint {
    let device: Device
    do throws(ModelError) {
      device = try Device.find(root: root)
    } catch {
      guard error.code == .noDevice else { throw error }
      throw OperationError(
        .notFound, code: error.errorCode, error.action, subject: root, reason: error.reason,
        hint: "name the form of its apps, for example 'host:\(root)' or 'flatpak:\(root)'; "
          + "sandboxctl-migrate(7) lists the forms")
    }
    switch device.layout {
    case .flatpak: return try side(.flatpak, root)
    case .snap: return try side(.snap, root)
    case .xdg: return try side(.host, root)
    case .folder: throw plain(root)
    case let layout: return .device(root: root, layout: layout)
    }
  }

  private static func plain(_ root: ByteString) -> UsageError {
    UsageError(
      .unknownLayout, "'\(root)' is a plain directory: its layout is not known",
      hint: "name it, for example 'host:\(root)' for a home directory or 'flatpak:\(root)'")
  }

  /// Returns the home directory, which may be given by its directory of apps.
  private static func side(_ packaging: Packaging, _ root: ByteString) throws -> MigrationEndpoint {
    let real: ByteString
    do throws(SystemError) {
      real = try Host.realPath(root)
    } catch { throw OperationError(error) }
    let inner = packaging.deviceDirectory?.components ?? []
    let isInner = !inner.isEmpty && Array(real.components.suffix(inner.count)) == inner
    let parts = real.components.dropLast(isInner ? inner.count : 0)
    return .home(AppPairing.Side(packaging, home: ByteString(joining: parts, isAbsolute: true)))
  }

  /// The layout of the devices that this endpoint can be exchanged with.
  var layout: Layout? {
    switch self {
    case .home(let side): side.packaging.layout
    case .device(_, let layout): layout
    case .snapshot, .machine: nil
    }
  }

  /// The root of the device.
  var root: ByteString? {
    switch self {
    case .home(let side): side.home.appending(side.packaging.deviceDirectory ?? "")
    case .device(let root, _): root
    case .snapshot, .machine: nil
    }
  }
}
