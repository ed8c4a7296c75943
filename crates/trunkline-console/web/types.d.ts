// The answers of the admin API that the page reads.

export interface Call {
    id: string;
    at: string;
    method: string;
    name: string | null;
    server: string | null;
    instance: string | number | null;
    principal: string | null;
    client: { name: string; version?: string } | null;
    revision: string | null;
    serverRevision: string | null;
    state: 'running' | 'done';
    outcome: string | null;
    reason: string | null;
    ms: number | null;
    stages: Stage[];
    bytesIn: number;
    bytesOut: number;
    rounds: number;
    questions: number;
    replica: string | null;
}

/** A stretch of a call, in milliseconds since it began. */
export interface Stage {
    stage: string;
    from: number;
    to: number | null;
}

export interface Recorded {
    t: number;
    side: 'client' | 'server';
    dir: 'in' | 'out';
    size: number;
    message: unknown;
    note?: string;
}

export interface Traffic {
    calls: Call[];
    dropped: number;
    oldest: string | null;
    recording: Record<string, unknown> | null;
}

export interface Status {
    version: string;
    uptimeMs: number;
    config: string | null;
    listen: string | null;
    clients: number;
    parked: number;
    servers: Server[];
}

export interface Server {
    name: string;
    state: string;
    revision?: string | null;
    instances: Instance[];
    waiters: number;
    tools?: number | null;
    prompts?: number | null;
    resources?: number | null;
    lastError?: unknown;
    heldBack?: unknown[];
    warnings?: string[] | null;
    tags?: string[];
}

export interface Instance {
    id: number;
    state: string;
    pid: number | null;
    [more: string]: unknown;
}
