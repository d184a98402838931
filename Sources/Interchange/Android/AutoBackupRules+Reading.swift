package import Codecs
internal import SystemIO

extension AutoBackupRules.Section {
  /// Reads a file that `android:fullBackupContent` names, as text or in binary form.
  ///
  /// - Throws: For a file that Android refuses as well, in which case it backs up nothing.
  package init(fullBackupContent bytes: [UInt8]) throws(CodecError) {
    let root = try AndroidXML(bytes)
    try AutoBackupRules.require("full-backup-content", root)
    try self.init(rulesIn: root, hasFlags: true)
  }

  /// Reads the rules below an element.
  ///
  /// - Parameter hasFlags: Whether an `include` can have `requireFlags`.
  fileprivate init(rulesIn element: AndroidXML, hasFlags: Bool) throws(CodecError) {
    self.init()
    try addChildren(of: element, hasFlags: hasFlags)
    addRemarksOnUselessExcludes(below: element)
  }

  /// Adds the rules below an element. Android reads the elements in sequence, so one within another
  /// is a rule as well.
  private mutating func addChildren(of element: AndroidXML, hasFlags: Bool) throws(CodecError) {
    for child in element.children {
      try add(child, hasFlags: hasFlags)
      try addChildren(of: child, hasFlags: hasFlags)
    }
  }

  private mutating func add(_ element: AndroidXML, hasFlags: Bool) throws(CodecError) {
    let isInclude = element.name == "include"
    guard isInclude || element.name == "exclude" else {
      throw AutoBackupRules.fault("'\(element.name)' is neither 'include' nor 'exclude'", element)
    }
    let limit = isInclude ? 3 : 2
    guard element.ownAttributes.count <= limit else {
      throw AutoBackupRules.fault("'\(element.name)' has more than \(limit) attributes", element)
    }
    let hasFlags = isInclude && hasFlags
    remarks += AutoBackupRemark.ofAttributes(of: element, hasFlags: hasFlags)
    let domain: AutoBackupDomain
    let path: [ByteString]
    do throws(AutoBackupRemark.Problem) {
      domain = try Self.domain(of: element)
      path = try Self.path(of: element)
    } catch {
      remarks.append(AutoBackupRemark(error, element))
      return
    }
    if isInclude { remarks += AutoBackupRemark.ofDirectory(path, in: domain, element) }
    let flags = hasFlags ? element.value("requireFlags") ?? "" : ""
    for path in Self.expanded(path, of: domain) {
      let rule = AutoBackupRules.Rule(
        domain: domain, location: AutoBackupLocation(domain, path),
        required: Self.transport(flags), position: element.position)
      if isInclude { includes.append(rule) } else { excludes.append(rule) }
    }
  }

  /// Returns the domain of a rule. Android ignores a rule without a known one.
  private static func domain(
    of element: AndroidXML
  ) throws(AutoBackupRemark.Problem) -> AutoBackupDomain {
    guard let name = element.value("domain"), !name.isEmpty else { throw .noDomain }
    guard let domain = AutoBackupDomain(rawValue: name) else { throw .unknownDomain(name) }
    return domain
  }

  /// Returns the components of a rule's path; none for the whole domain. Android ignores a rule
  /// whose path has `..` or `//` anywhere.
  private static func path(
    of element: AndroidXML
  ) throws(AutoBackupRemark.Problem) -> [ByteString] {
    let text = element.value("path") ?? ""
    if text.contains("..") { throw .parentPath }
    if text.contains("//") { throw .doubleSlash }
    return ByteString(text).components.filter { $0 != "." }
  }

  /// Adds remarks on each `exclude` that is neither in nor above an included path.
  private mutating func addRemarksOnUselessExcludes(below element: AndroidXML) {
    if includes.isEmpty || excludes.isEmpty { return }
    var useful: Set<CodecError.Position> = []
    var useless: Set<CodecError.Position> = []
    let included = AutoBackupPathSet(includes.map(\.location))
    for rule in excludes {
      if included.touches(rule.location) {
        useful.insert(rule.position)
      } else {
        useless.insert(rule.position)
      }
    }
    useless.subtract(useful)
    if useless.isEmpty { return }
    remarks += element.descendants.filter { useless.contains($0.position) }
      .map { AutoBackupRemark(.notIncluded, $0) }
  }

  /// Returns the path and those of the files that belong to it: the logs of a database, and the
  /// file of preferences, which are named without their ending.
  private static func expanded(_ path: [ByteString], of domain: AutoBackupDomain) -> [[ByteString]]
  {
    guard let last = path.last else { return [path] }
    let endings =
      switch domain {
      case .database: ["-journal", "-wal"]
      case .sharedpref where !last.hasSuffix(".xml"): [".xml"]
      default: [String]()
      }
    return [path] + endings.map { path.dropLast() + [last.concatenating(ByteString($0))] }
  }

  /// Returns the flags of a text such as `clientSideEncryption|deviceToDeviceTransfer`; unknown ones
  /// are ignored, as by Android.
  private static func transport(_ text: String) -> AutoBackupTransport {
    text.split(separator: "|").reduce(into: []) { all, name in
      all.formUnion(AutoBackupTransport.names[String(name)] ?? [])
    }
  }
}

extension AutoBackupRules.DataExtraction {
  /// Reads a file that `android:dataExtractionRules` names, as text or in binary form.
  ///
  /// - Throws: For a file that Android refuses as well, in which case it backs up nothing.
  package init(_ bytes: [UInt8]) throws(CodecError) {
    let root = try AndroidXML(bytes)
    try AutoBackupRules.require("data-extraction-rules", root)
    self.init(
      cloud: try Self.section(.cloud, in: root), transfer: try Self.section(.transfer, in: root))
    remarks = AutoBackupRemark.ofSections(in: root)
  }

  /// Returns the rules of all elements for a destination, or nil if there is none.
  private static func section(
    _ destination: AutoBackupRules.Destination, in root: AndroidXML
  ) throws(CodecError) -> AutoBackupRules.Section? {
    var whole: AutoBackupRules.Section?
    for child in root.children where child.name == destination.rawValue {
      let part = try AutoBackupRules.Section(rulesIn: child, hasFlags: false)
      var section = whole ?? AutoBackupRules.Section()
      section.includes += part.includes
      section.excludes += part.excludes
      section.remarks += part.remarks
      if destination == .cloud, child.value("disableIfNoEncryptionCapabilities") == "true" {
        section.requiresEncryption = true
      }
      whole = section
    }
    return whole
  }
}

extension AutoBackupRules {
  fileprivate static func require(_ name: String, _ root: AndroidXML) throws(CodecError) {
    guard root.name == name else {
      throw fault("its first element is '\(root.name)', not '\(name)'", root)
    }
  }

  fileprivate static func fault(_ reason: String, _ element: AndroidXML) -> CodecError {
    // The name of an element is the file's: escaped, it cannot break a line of output.
    CodecError(
      .malformed, in: .androidXML, reason: ByteString(reason).description, at: element.position)
  }
}
