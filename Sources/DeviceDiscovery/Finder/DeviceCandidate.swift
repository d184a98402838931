package import SandboxModel
package import SystemIO

/// A device that can be selected by name. Only the device's own records have been read, not its
/// apps and containers.
package struct DeviceCandidate: Sendable, Hashable {
  /// The directory identified as a device, the argument for `DeviceFinder.find(_:)`.
  package let directory: ByteString
  /// The root of the device found in the directory.
  package let root: ByteString
  package let layout: Layout
  /// The name that the owner gave the device, if the layout stores one.
  package let name: ByteString?
  package let identity: Device.Identity
}

extension DeviceFinder {
  /// Returns the devices at a location, sorted by path: the directory itself, once for each of its
  /// layouts; if it has none, the devices among its subdirectories, as with the simulators on a
  /// Mac. Links in the directory are not followed.
  ///
  /// - Throws: `system` if the directory cannot be read.
  package func candidates(in path: ByteString) throws(ModelError) -> [DeviceCandidate] {
    do throws(SystemError) {
      let directory = try Directory.open(resolved: try Host.realPath(path))
      let own = candidates(at: directory)
      if !own.isEmpty { return own }
      var found: [DeviceCandidate] = []
      for name in layout == .folder ? [] : try directory.names() {
        if let child = try? directory.directory(name) { found += candidates(at: child) }
      }
      return found.sorted {
        ($0.directory, $0.layout.rawValue) < ($1.directory, $1.layout.rawValue)
      }
    } catch {
      throw ModelError(error, "find devices in")
    }
  }

  /// Returns a candidate for each layout of a directory. The layout of a home directory or of a
  /// system, if the directory also has another layout, counts only if it was requested: otherwise
  /// no name would select the device with the other layout.
  private func candidates(at directory: borrowing Directory) -> [DeviceCandidate] {
    var found: [DeviceCandidate] = []
    for layout in self.layout.map({ [$0] }) ?? Layout.allCases {
      if self.layout == nil, layout == .xdg || layout == .systemd, !found.isEmpty { continue }
      guard let form = Self.form(of: directory, layout, isAsked: self.layout != nil),
        let candidate = candidate(at: directory, layout: layout, form: form)
      else { continue }
      found.append(candidate)
    }
    return found
  }

  private func candidate(
    at directory: borrowing Directory, layout: Layout, form: DirectoryForm
  ) -> DeviceCandidate? {
    guard let root = try? Self.root(of: form, directory.path) else { return nil }
    var facts = Device.Facts()
    if case .coreSimulator(let form) = form {
      var survey = Survey(root: root)
      facts = CoreSimulatorFinder.facts(of: directory, form, &survey)
    }
    return DeviceCandidate(
      directory: directory.path, root: root, layout: layout, name: facts.name,
      identity: identity(layout, root, udid: facts.udid))
  }

  /// Returns the root of the device at a location in a directory. A link that root does not follow
  /// is not resolved, so that `find(_:)` refuses the device.
  private static func root(
    of form: DirectoryForm, _ directory: ByteString
  ) throws(SystemError) -> ByteString {
    switch form {
    case .coreSimulator, .flatpakApps, .snapDirectory, .macOSHome, .androidApps, .systemdRoot,
      .xdgHome, .folder:
      directory
    case .androidSystem(let path): try root(at: directory.appending(path))
    case .macOSContainers(let home): home
    case .flatpakHome: try root(at: directory.appending(".var/app"))
    case .snapHome(let name): try root(at: directory.appending(name))
    }
  }

  private static func root(at path: ByteString) throws(SystemError) -> ByteString {
    switch try ForeignLink.resolve(path) {
    case .path(let real): real
    case .foreign: path
    }
  }
}

extension [DeviceCandidate] {
  /// Returns the device with a UDID, an identity or a path; otherwise the only device with that
  /// name or directory name, ignoring case.
  ///
  /// - Throws: `noDevice` if there is none, `ambiguousDevice` if there are several. The hint lists
  ///   them.
  package func device(_ name: ByteString) throws(ModelError) -> DeviceCandidate {
    var found = filter { $0.isExactly(name) }
    if found.isEmpty { found = filter { $0.isCalled(name) } }
    if found.count == 1 { return found[0] }
    if found.isEmpty {
      throw ModelError(
        .noDevice, "find the device", on: name,
        reason: isEmpty ? "there are no devices" : "no device has this name",
        hint: isEmpty
          ? "specify its directory with '--root' or its layout with '--layout'"
          : "choose one of \(listed)")
    }
    throw ModelError(
      .ambiguousDevice, "find the device", on: name, reason: "several devices have this name",
      hint: "specify the UDID or path of one of \(found.listed)")
  }

  /// The first few candidates, for an error hint.
  package var listed: String {
    let shown = prefix(Self.shownCount).map(\.words).joined(separator: ", ")
    return count > Self.shownCount ? "\(shown) and \(count - Self.shownCount) more" : shown
  }

  private static var shownCount: Int { 10 }
}

extension DeviceCandidate {
  /// Whether the word is an identity, a path or a UDID of this device.
  fileprivate func isExactly(_ word: ByteString) -> Bool {
    if [directory, root].contains(word) || ByteString(identity.description) == word { return true }
    guard case .udid(let udid) = identity else { return false }
    return udid.folded == word.folded
  }

  fileprivate func isCalled(_ word: ByteString) -> Bool {
    [name, directory.lastComponent].contains { $0?.folded == word.folded }
  }

  /// The name, the UDID or path, and the layout.
  fileprivate var words: String {
    let subject = if case .udid(let udid) = identity { "\(udid)" } else { "'\(root)'" }
    guard let name else { return "\(subject) (\(layout.rawValue))" }
    return "'\(name)' (\(subject), \(layout.rawValue))"
  }
}
