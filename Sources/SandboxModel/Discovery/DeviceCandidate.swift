public import SystemIO

/// A device that can be chosen by its name, known by its own records alone: its apps and containers
/// are not looked at.
public struct DeviceCandidate: Sendable, Hashable {
  /// The directory that was found to be one, which `DeviceFinder.find(_:)` takes.
  public let directory: ByteString
  /// The root that the device has when it is found there.
  public let root: ByteString
  public let layout: Layout
  /// The name that its owner gave it, where the layout keeps one.
  public let name: ByteString?
  public let identity: DeviceIdentity
}

extension DeviceFinder {
  /// The devices at a place, sorted by path: those that the directory itself is, one for each of its
  /// layouts, else those among the directories in it, as a Mac keeps its simulators. No link in it is
  /// followed.
  ///
  /// - Throws: `system` where the directory cannot be read.
  public func candidates(in place: ByteString) throws(ModelError) -> [DeviceCandidate] {
    do throws(SystemError) {
      let directory = try Directory.open(path: try Host.realPath(place))
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
      throw ModelError(
        .system, "look for devices in", on: error.path, error.reason, hint: error.hint)
    }
  }

  /// One for each layout that a directory has.
  private func candidates(at directory: borrowing Directory) -> [DeviceCandidate] {
    var found: [DeviceCandidate] = []
    for layout in self.layout.map({ [$0] }) ?? Layout.allCases {
      guard let place = Self.place(of: directory, layout, isAsked: self.layout != nil),
        let candidate = candidate(directory, layout, place)
      else { continue }
      found.append(candidate)
    }
    return found
  }

  private func candidate(
    _ directory: borrowing Directory, _ layout: Layout, _ place: Location
  ) -> DeviceCandidate? {
    guard let root = try? Self.root(of: place, directory.path) else { return nil }
    var facts = DeviceFacts()
    if case .coreSimulator(let place) = place {
      var survey = Survey(root: root)
      facts = survey.simulatorFacts(of: directory, place)
    }
    return DeviceCandidate(
      directory: directory.path, root: root, layout: layout, name: facts.name,
      identity: identity(layout, root, udid: facts.udid))
  }

  /// The root of the device that is found at a place in a directory.
  private static func root(
    of place: Location, _ directory: ByteString
  ) throws(SystemError) -> ByteString {
    switch place {
    case .coreSimulator, .flatpakApps, .snapDirectory, .macOSHome, .folder: directory
    case .macOSContainers(let home): home
    case .flatpakHome: try Host.realPath(directory.appending(".var/app"))
    case .snapHome(let name): try Host.realPath(directory.appending(name))
    }
  }
}

extension [DeviceCandidate] {
  /// The device that a user means: by its UDID, its identity or its path; else by its name or that
  /// of its directory, in any case of letters, when only one device has it.
  ///
  /// - Throws: `noDevice` when there is none, `ambiguousDevice` when there are several; the hint lists
  ///   them.
  public func device(_ name: ByteString) throws(ModelError) -> DeviceCandidate {
    var found = filter { $0.isExactly(name) }
    if found.isEmpty { found = filter { $0.isCalled(name) } }
    if found.count == 1 { return found[0] }
    if found.isEmpty {
      throw ModelError(
        .noDevice, "find the device", on: name,
        isEmpty ? "no device is there" : "no device that is there is called so",
        hint: isEmpty
          ? "name the directory that it lies in with '--root', or its layout with '--layout'"
          : "choose one of \(listed)")
    }
    throw ModelError(
      .ambiguousDevice, "find the device", on: name, "several devices are called so",
      hint: "give the UDID, or the path, of one of \(found.listed)")
  }

  /// The first few of them, as a person is to choose among them.
  public var listed: String {
    let shown = prefix(Self.shownCount).map(\.words).joined(separator: ", ")
    return count > Self.shownCount ? "\(shown) and \(count - Self.shownCount) more" : shown
  }

  private static var shownCount: Int { 10 }
}

extension DeviceCandidate {
  /// Whether the name is one that no other device has.
  fileprivate func isExactly(_ word: ByteString) -> Bool {
    if [directory, root].contains(word) || ByteString(identity.description) == word { return true }
    guard case .udid(let udid) = identity else { return false }
    return udid.folded == word.folded
  }

  fileprivate func isCalled(_ word: ByteString) -> Bool {
    [name, directory.lastComponent].contains { $0?.folded == word.folded }
  }

  /// The name with the UDID, or the path, and the layout.
  fileprivate var words: String {
    let place = if case .udid(let udid) = identity { "\(udid)" } else { "'\(root)'" }
    guard let name else { return "\(place) (\(layout.rawValue))" }
    return "'\(name)' (\(place), \(layout.rawValue))"
  }
}
