internal import SandboxModel
package import SystemIO

/// All types of a device: those of the system and those that its apps declare, with their
/// conformance, which has no cycles.
package struct TypeTree: Sendable {
  /// The declaration that holds for each type.
  private var declarations: [ByteString: TypeDeclaration] = [:]
  /// The accepted conformance: the direct parents of each type.
  private var parents: [ByteString: [TypeIdentifier]] = [:]
  private var extensions: [ByteString: [TypeIdentifier]] = [:]
  private var mimeTypes: [ByteString: [TypeIdentifier]] = [:]
  let signatures: [FileSignature]
  /// Declarations that do not hold, and refused conformance, in the order of the apps.
  package private(set) var findings: [DeclarationFinding] = []

  /// The maximum number of types to which a type may conform, directly or not. The system's types
  /// have fewer than 20; the limit bounds the work for hostile declarations.
  static let ancestorLimit = 256

  /// Builds the tree. Of several declarations of a type the one of the system holds, otherwise an
  /// exported one, otherwise an imported one, and of equal ones the first.
  package init(system: TypeTable, apps: [TypeDeclaration] = []) {
    signatures = system.signatures
    let all = system.declarations + apps
    for rank in 0...3 {
      for declaration in all where declaration.origin.rank == rank { add(declaration) }
    }
  }

  private mutating func add(_ declaration: TypeDeclaration) {
    let key = declaration.identifier.key
    if let other = declarations[key] {
      if let app = declaration.origin.app { remark(on: declaration, of: app, besides: other) }
      return
    }
    if let app = declaration.origin.app, declaration.identifier.isReserved {
      findings.append(
        DeclarationFinding(
          .warning, of: app, at: declaration.keyName,
          reason: "the type '\(declaration.identifier)' is in a domain that only the system may use"
        ))
    }
    declarations[key] = declaration
    if declaration.origin.app == nil {
      // The program's own data, whose types conform to each other only and have no cycle (tested).
      parents[key] = declaration.conformsTo
    } else {
      for parent in declaration.conformsTo { add(parent, to: declaration) }
    }
    for name in declaration.extensions {
      extensions[name, default: []].append(declaration.identifier)
    }
    for name in declaration.mimeTypes {
      mimeTypes[name, default: []].append(declaration.identifier)
    }
  }

  /// Reports a second declaration of a type, unless an import only repeats the owner's.
  private mutating func remark(
    on declaration: TypeDeclaration, of app: BundleIdentifier, besides other: TypeDeclaration
  ) {
    guard case .exported = declaration.origin else { return }
    let owner = other.origin.app.map { "'\($0)' exports it, too" } ?? "the system declares it"
    findings.append(
      DeclarationFinding(
        .warning, of: app, at: declaration.keyName,
        reason: "the declaration of '\(declaration.identifier)' does not hold: \(owner)"))
  }

  /// Adds the conformance to a parent, unless it closes a cycle or exceeds the limit.
  private mutating func add(_ parent: TypeIdentifier, to declaration: TypeDeclaration) {
    let key = declaration.identifier.key
    var refusal: String?
    if parent.key == key {
      refusal = "it conforms to itself"
    } else if let above = ancestors(ofKey: parent.key) {
      if above.contains(where: { $0.key == key }) {
        refusal = "'\(parent)' conforms to it, which is a cycle"
      }
    } else {
      refusal = "'\(parent)' conforms to more than \(Self.ancestorLimit) types"
    }
    guard let refusal else {
      parents[key, default: []].append(parent)
      return
    }
    guard let app = declaration.origin.app else { return }
    findings.append(
      DeclarationFinding(
        .warning, of: app, at: declaration.keyName,
        reason:
          "the conformance of '\(declaration.identifier)' to '\(parent)' is refused: \(refusal)"))
  }

  /// Returns the types above one, the nearest first, or nil if there are more than the limit.
  private func ancestors(ofKey key: ByteString) -> [TypeIdentifier]? {
    var (found, seen, next): ([TypeIdentifier], Set<ByteString>, Int) = ([], [key], 0)
    var current = key
    while true {
      for parent in parents[current] ?? [] where seen.insert(parent.key).inserted {
        found.append(parent)
      }
      if found.count > Self.ancestorLimit { return nil }
      guard next < found.count else { return found }
      current = found[next].key
      next += 1
    }
  }
}

extension TypeTree {
  /// The number of declared types.
  package var count: Int { declarations.count }

  /// Returns the declaration that holds for a type, or nil if there is none.
  package func declaration(of type: TypeIdentifier) -> TypeDeclaration? { declarations[type.key] }

  /// Returns the types to which a type conforms, the nearest first, without itself.
  package func ancestors(of type: TypeIdentifier) -> [TypeIdentifier] {
    ancestors(ofKey: type.key) ?? []
  }

  /// Returns the number of steps from a type to one to which it conforms, 0 for itself, or nil if
  /// it does not conform to it.
  package func distance(from type: TypeIdentifier, to other: TypeIdentifier) -> Int? {
    distances(from: type)[other.key]
  }

  /// Returns whether a type is another or conforms to it.
  package func conforms(_ type: TypeIdentifier, to other: TypeIdentifier) -> Bool {
    type == other || ancestors(of: type).contains(other)
  }

  /// Returns the numbers of steps from a type to itself and to all types to which it conforms, by
  /// their keys.
  func distances(from type: TypeIdentifier) -> [ByteString: Int] {
    var distances = [type.key: 0]
    var (level, steps) = ([type.key], 0)
    while !level.isEmpty {
      steps += 1
      var above: [ByteString] = []
      for parent in level.flatMap({ parents[$0] ?? [] }) where distances[parent.key] == nil {
        distances[parent.key] = steps
        above.append(parent.key)
      }
      level = above
    }
    return distances
  }

  /// Returns the types with a filename extension, in order of precedence.
  package func types(ofExtension name: ByteString) -> [TypeIdentifier] {
    extensions[name.lowercasedASCII] ?? []
  }

  /// Returns the types with a MIME type, in order of precedence.
  package func types(ofMIMEType name: ByteString) -> [TypeIdentifier] {
    mimeTypes[name.lowercasedASCII] ?? []
  }
}

extension TypeDeclaration {
  /// The key of the Info.plist in which the declaration stands.
  var keyName: String {
    if case .exported = origin {
      "UTExportedTypeDeclarations"
    } else {
      "UTImportedTypeDeclarations"
    }
  }
}
